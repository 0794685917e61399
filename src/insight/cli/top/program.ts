// The flags of `portcullis top`.

import { type Command, Option } from 'commander'
import { collect, forAdmin } from '../../../cli/command/flags.ts'
import type { CommandContext } from '../../../cli/command/output.ts'

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
      const { openScreen } = await import('../../../kit/io/world/terminal.ts')
      return done((await import('./top.ts')).top({ ...options, clusters: [...names, ...cluster], openScreen, out }))
    })
}
