// The flags of `portcullis protect`.

import type { Command, OptionValues } from 'commander'
import { collect, forControlPlane, parseWholeNumber } from '../../cli/command/flags.ts'
import type { CommandContext } from '../../cli/command/output.ts'
import { CONFIGURATION_NAME } from './install-manifest.ts'

export function addProtect(program: Command, { out, err, now, done }: CommandContext): void {
  const protect = program.command('protect').description('pod protection: its state, its decisions, its dry-run switch')
  forControlPlane(protect.command('status'))
    .description('show PodProtectors with their numbers and cells; exit with 1 if one is below its minimum')
    .argument('[name]', 'only this one')
    .option('-n, --namespace <namespace>', 'namespace; default: default')
    .option('-A, --all-namespaces', 'in all namespaces', false)
    .option(
      '--cluster <name>',
      'only this UpstreamCluster, the members of a federated one, or a cell; default: all cells',
    )
    .action(async (name, options) =>
      done(
        (await import('./status.ts')).protectStatus({ ...options, ...(name !== undefined && { name }), now, out, err }),
      ),
    )
  forControlPlane(protect.command('why'))
    .description('show whether a pod may be deleted now, and why; exit with 1 if the deletion would be refused')
    .argument('<pod>', 'its name')
    .option('-n, --namespace <namespace>', 'namespace of the pod; default: default')
    .requiredOption(
      '--cluster <name>',
      'UpstreamCluster of the pod, a federated one with -n MEMBER--NAMESPACE, or the name of a cell',
    )
    .option(
      '--pod-kubeconfig <file>',
      'kubeconfig of that cluster, or of the gateway in front of it; default: through the gateway, else with its credential',
    )
    .option('--pod-context <name>', "context in it; default: the kubeconfig's own")
    .option('--stale-after <duration>', '--protection-stale-after of the gateway; default: as it marked the cells')
    .option('--clock-skew <duration>', '--protection-clock-skew of the gateway')
    .option('--max-concurrent-lag <n>', '--protection-max-concurrent-lag of the gateway', parseWholeNumber)
    .action(async (pod, options) => done((await import('./why.ts')).protectWhy({ ...options, pod, now, out, err })))
  forControlPlane(protect.command('dry-run'))
    .description(
      'on: evaluate and count, but refuse nothing; off: refuse again. Waits until every replica has applied it',
    )
    .argument('<mode>', 'on or off')
    .argument(
      '[clusters...]',
      'metadata.name of UpstreamClusters, a federated one for its members; default: all with spec.podProtection',
    )
    .option('--timeout <duration>', 'how long to wait for each', '30s')
    .action(async (mode, clusters, options) =>
      done((await import('./dry-run.ts')).protectDryRun({ ...options, mode, clusters, now, out, err })),
    )
  registerProtectInstall(protect, { out, err, now, done })
}

const DEFAULT_PORT = 9444

/** `install`, `uninstall` and `credentials`. */
export function registerProtectInstall(command: Command, { out, err, now, done }: CommandContext): void {
  forWorker(forWebhook(command.command('install')))
    .description('make the API servers of a worker cluster call the protection webhook')
    .option('--no-token', 'do not put a token in the path: the API servers present a credential (protect credentials)')
    .option(
      '--exclude-namespace <namespace>',
      'namespace whose pods the webhook does not check; may be repeated',
      collect,
      [],
    )
    .option('--shadow', 'deletions pass while the webhook is unavailable (failurePolicy Ignore)', false)
    .option('--print', 'print the manifest, and change nothing', false)
    .option('--timeout <duration>', 'how long to wait for the webhook to answer', '30s')
    .action(async (options) => {
      const excludeNamespace = options.excludeNamespace.length > 0 ? options.excludeNamespace : ['kube-system']
      return done((await import('./install.ts')).protectInstall({ ...options, excludeNamespace, now, out, err }))
    })
  forWorker(command.command('uninstall'))
    .description('remove the webhook: deletions that do not pass the gateway are no longer evaluated')
    .action(async (options) => done((await import('./install.ts')).protectUninstall({ ...options, out, err })))
  forWebhook(command.command('credentials'))
    .description('print the kubeconfig with which the API servers of a worker cluster authenticate to the webhook')
    .action(async (options) => done((await import('./install.ts')).protectCredentials({ ...options, out, err })))
}

function forWebhook(command: Command) {
  return command
    .requiredOption('--cluster <cell>', 'the cell: spec.podProtection.cell, or the name of the UpstreamCluster')
    .option('--url <url>', 'https://HOST:PORT of --protection-listen, as the API servers reach it')
    .option('--service <namespace/name>', 'Service in the worker cluster, in place of --url')
    .option('--port <port>', 'port of the Service', Number, DEFAULT_PORT)
    .option('--data-dir <dir>', '--data-dir of the gateway, with its CA and the key of tokens')
    .option('--ca-file <file>', 'CA of the webhook, PEM; default: that in --data-dir')
    .option('--token-file <file>', 'token of the cell; default: one by the key in --data-dir')
}

function forWorker<Flags extends OptionValues>(command: Command<[], Flags>) {
  return command
    .option('--kubeconfig <file>', 'kubeconfig of the worker cluster; default: as kubectl')
    .option('--context <name>', "context in it; default: the kubeconfig's own")
    .option('--name <name>', 'name of the ValidatingWebhookConfiguration', CONFIGURATION_NAME)
}
