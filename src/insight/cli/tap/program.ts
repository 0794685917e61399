// The flags of `tap`.

import { type Command, Option } from 'commander'
import { collect, forAdmin } from '../../../cli/command/flags.ts'
import { type CommandContext, NO_TERMINAL, type Terminal } from '../../../cli/command/output.ts'

interface TapContext extends CommandContext {
  readonly terminal?: Terminal
}

export function addTap(program: Command, { out, err, now, done, terminal = NO_TERMINAL }: TapContext): void {
  forAdmin(program.command('tap'))
    .description(
      'show requests as they happen, from all threads and replicas; in filters, NAME* is a prefix, and -NAME excludes',
    )
    .argument('[cluster...]', 'metadata.name of UpstreamClusters; default: all')
    .option('-l, --selector <selector>', 'only UpstreamClusters that have these labels when the tap begins: region=eu')
    .option(
      '--user <user>',
      'requests of the user, or of a user that impersonates it; like the other filters, it may be repeated',
      collect,
      [],
    )
    .option('--group <group>', 'requests of users in the group', collect, [])
    .option('--user-agent <agent>', 'requests of clients with this User-Agent', collect, [])
    .option('--verb <verbs>', 'get, list, watch, create ...', collect, [])
    .option('--resource <resources>', 'pods, pods/log, deployments.apps, pods/*', collect, [])
    .option('-n, --namespace <namespaces>', 'requests for objects in the namespace', collect, [])
    .option('--name <name>', 'name of the object', collect, [])
    .option('--path <path>', 'path of requests that are not for a resource: /healthz, /openapi/*', collect, [])
    .option('--code <codes>', 'status code, or 4xx', collect, [])
    .option('--reason <reasons>', 'why the gateway refused: rate-limited, degraded ...', collect, [])
    .option('--address <cidr>', 'requests of clients at the address or in the range', collect, [])
    .option('--refused', 'only requests that the gateway refused', false)
    .option('--slow <duration>', 'only requests that took at least this long')
    .option('--started', 'also show requests when they begin', false)
    .option('--max-rps <number>', 'maximum number of events a second; others are only counted', '100')
    .option('--for <duration>', 'end after this time, at most 1h', '5m')
    .option('--limit <number>', 'end after this number of events')
    .addOption(new Option('-o, --output <format>').choices(['table', 'wide', 'json']).default('table'))
    .action(async (clusters, { output, admin, caFile, tokenFile, kubeconfig, context, ...flags }) => {
      const { AdminClient } = await import('../../../cli/client/admin-client.ts')
      const { tap } = await import('./tap.ts')
      return done(
        tap({
          flags: { ...flags, clusters },
          output,
          client: () => new AdminClient({ admin, ...given({ caFile, tokenFile, kubeconfig, context }) }),
          columns: terminal.columns,
          interrupted: terminal.interrupted(),
          now,
          out,
          err,
        }),
      )
    })
}

/** Drops undefined members. */
function given<T extends object>(options: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>
  }
}
