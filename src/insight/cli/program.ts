// The flags of `portcullis top`, `sessions` and `tap`.

import { type Command, Option } from 'commander'
import { collect, forAdmin } from '../../cli/command/flags.ts'
import { type CommandContext, NO_TERMINAL, type Terminal } from '../../cli/command/output.ts'

const BY = ['user', 'userAgent', 'resource', 'verb', 'namespace', 'address', 'cluster']
const SORTS = ['requests', 'bytes', 'latency', 'upstream-seconds', 'listed-bytes', 'refused']

export function addTop(program: Command, { out, done }: CommandContext): void {
  forAdmin(program.command('top'))
    .description('show the top talkers, refreshed in place (q quits); printed once if the output is not a terminal')
    .argument('[cluster...]', "only requests to these UpstreamClusters, by name or glob: 'prod-*'; default: to all")
    .addOption(new Option('--by <dimension>', 'what to group requests by').choices(BY).default('user'))
    .addOption(new Option('--sort <number>', 'number to sort by').choices(SORTS).default('requests'))
    .addOption(new Option('--minutes <n>', 'how many minutes to look back').choices(['1', '5', '60']).default('1'))
    .option('--limit <n>', 'maximum number of rows', '20')
    .option('--cluster <name>', 'the same as the argument; may be repeated', collect, [])
    .option('-l, --selector <selector>', 'only requests to UpstreamClusters with these labels: region=eu')
    .addOption(new Option('-o, --output <format>', 'json: query once').choices(['text', 'json']).default('text'))
    .option('--once', 'query once, even on a terminal', false)
    .action(async (names, { cluster, ...options }) => {
      const { openScreen } = await import('../../kit/io/world/terminal.ts')
      return done((await import('./top/top.ts')).top({ ...options, clusters: [...names, ...cluster], openScreen, out }))
    })
}

export function addSessions(program: Command, { out, now, done }: CommandContext): void {
  forAdmin(program.command('sessions'))
    .description('show which users are logged in: seen in the last hour, or with an open watch')
    .argument('[cluster...]', "only users of these UpstreamClusters, by name or glob: 'prod-*'; default: of all")
    .option('--user <user>', 'only this user')
    .option('-l, --selector <selector>', 'only users of UpstreamClusters with these labels: region=eu')
    .option('--limit <n>', 'maximum number of rows', '100')
    .addOption(new Option('-o, --output <format>').choices(['text', 'json']).default('text'))
    .action(async (clusters, options) =>
      done((await import('./sessions/sessions.ts')).sessions({ ...options, clusters, out, now })),
    )
}

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
      const { AdminClient } = await import('../../cli/client/admin-client.ts')
      const { tap } = await import('./tap/tap.ts')
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
