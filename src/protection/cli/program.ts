// The flags of `portcullis protect`.

import type { Command, OptionValues } from 'commander'
import { collect, forControlPlane, parseWholeNumber } from '../../cli/command/flags.ts'
import type { CommandContext } from '../../cli/command/output.ts'
import { CONFIGURATION_NAME } from './install-manifest.ts'

export function addProtect(program: Command, { out, err, now, done }: CommandContext): void {
  const protect = program
    .command('protect')
    .description('show the state of pod protection, explain its decisions, and switch dry-run on and off')
  forControlPlane(protect.command('status'))
    .description('show PodProtectors with their numbers and cells; exit with 1 if one is below its minimum')
    .argument('[name]', 'only this PodProtector')
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
    .argument('<pod>', 'name of the pod')
    .option('-n, --namespace <namespace>', 'namespace of the pod; default: default')
    .requiredOption(
      '--cluster <name>',
      'UpstreamCluster of the pod, or a federated one with -n MEMBER--NAMESPACE, or the name of a cell',
    )
    .option(
      '--pod-kubeconfig <file>',
      "kubeconfig of that cluster, or of the gateway in front of it; default: through the gateway, otherwise with the gateway's credential",
    )
    .option('--pod-context <name>', "context to use; default: the kubeconfig's current one")
    .option(
      '--stale-after <duration>',
      '--protection-stale-after of the gateway; default: the cells that it has marked are stale',
    )
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
      'metadata.name of UpstreamClusters; a federated one stands for its members; default: all with spec.podProtection',
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
    .option(
      '--no-token',
      'do not put a token into the path; the API servers present a credential instead (protect credentials)',
    )
    .option(
      '--exclude-namespace <namespace>',
      'namespace whose pods the webhook does not check; may be repeated',
      collect,
      [],
    )
    .option('--shadow', 'admit deletions while the webhook is unavailable (failurePolicy Ignore)', false)
    .option('--print', 'print the manifest, and change nothing', false)
    .option('--timeout <duration>', 'how long to wait for the webhook to answer', '30s')
    .action(async (options) => {
      const excludeNamespace = options.excludeNamespace.length > 0 ? options.excludeNamespace : ['kube-system']
      return done((await import('./install.ts')).protectInstall({ ...options, excludeNamespace, now, out, err }))
    })
  forWorker(command.command('uninstall'))
    .description('remove the webhook; deletions that bypass the gateway are then no longer evaluated')
    .action(async (options) => done((await import('./install.ts')).protectUninstall({ ...options, out, err })))
  forWebhook(command.command('credentials'))
    .description('print the kubeconfig with which the API servers of a worker cluster authenticate to the webhook')
    .action(async (options) => done((await import('./install.ts')).protectCredentials({ ...options, out, err })))
}

function forWebhook(command: Command) {
  return command
    .requiredOption('--cluster <cell>', 'name of the cell: spec.podProtection.cell, or the name of the UpstreamCluster')
    .option('--url <url>', 'https://HOST:PORT of --protection-listen, as the API servers reach it')
    .option('--service <namespace/name>', 'Service in the worker cluster, instead of --url')
    .option('--port <port>', 'port of the Service', Number, DEFAULT_PORT)
    .option('--data-dir <dir>', '--data-dir of the gateway, which holds its CA and the key for tokens')
    .option('--ca-file <file>', 'CA of the webhook, PEM; default: the CA in --data-dir')
    .option('--token-file <file>', 'token of the cell; default: one that is made with the key in --data-dir')
}

function forWorker<Flags extends OptionValues>(command: Command<[], Flags>) {
  return command
    .option('--kubeconfig <file>', 'kubeconfig of the worker cluster; default: the one that kubectl uses')
    .option('--context <name>', "context to use; default: the kubeconfig's current one")
    .option('--name <name>', 'name of the ValidatingWebhookConfiguration', CONFIGURATION_NAME)
}
