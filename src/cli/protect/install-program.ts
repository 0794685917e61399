// The flags of `portcullis protect install`, `uninstall` and `credentials`.

import type { Command, OptionValues } from 'commander'
import { collect } from '../command/flags.ts'
import type { CommandContext } from '../command/output.ts'
import { CONFIGURATION_NAME } from './install-manifest.ts'

const DEFAULT_PORT = 9444

export function registerProtectInstall(command: Command, { out, err, now, done }: CommandContext): void {
  forWorker(forWebhook(command.command('install')))
    .description('make the API servers of a worker cluster ask the protection webhook')
    .option('--no-token', 'put no token in the path: the API servers present a credential (protect credentials)')
    .option('--exclude-namespace <namespace>', 'pods there are never asked about; may be repeated', collect, [])
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
    .option('--port <port>', 'of the Service', Number, DEFAULT_PORT)
    .option('--data-dir <dir>', '--data-dir of the gateway, with its CA and the key of tokens')
    .option('--ca-file <file>', 'CA of the webhook, PEM; default: that in --data-dir')
    .option('--token-file <file>', 'token of the cell; default: one by the key in --data-dir')
}

function forWorker<Flags extends OptionValues>(command: Command<[], Flags>) {
  return command
    .option('--kubeconfig <file>', 'of the worker cluster; default: as kubectl')
    .option('--context <name>', "context in it; default: the kubeconfig's own")
    .option('--name <name>', 'of the ValidatingWebhookConfiguration', CONFIGURATION_NAME)
}
