// The flags of `portcullis top`.

import { type Command, Option } from 'commander'
import { forAdmin } from '../../../cli/command/flags.ts'
import type { CommandContext } from '../../../cli/command/output.ts'

const BY = ['user', 'userAgent', 'resource', 'verb', 'namespace', 'address', 'cluster']
const SORTS = ['requests', 'bytes', 'latency', 'upstream-seconds', 'listed-bytes', 'refused']

export function addTop(program: Command, { out, done }: CommandContext): void {
  forAdmin(program.command('top'))
    .description('top talkers, refreshed in place (q quits); printed once if there is no terminal')
    .addOption(new Option('--by <dimension>', 'what to tell requests apart by').choices(BY).default('user'))
    .addOption(new Option('--sort <number>', 'what to sort by').choices(SORTS).default('requests'))
    .addOption(new Option('--minutes <n>', 'how many minutes to look back').choices(['1', '5', '60']).default('1'))
    .option('--limit <n>', 'rows', '20')
    .option('--cluster <name>', 'only requests to this UpstreamCluster; default: to all')
    .addOption(new Option('-o, --output <format>', 'json asks once').choices(['text', 'json']).default('text'))
    .option('--once', 'ask once, also on a terminal', false)
    .action(async (options) => {
      const { openScreen } = await import('../../../kit/io/world/terminal.ts')
      return done((await import('./top.ts')).top({ ...options, openScreen, out }))
    })
}
