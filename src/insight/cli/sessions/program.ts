// The flags of `portcullis sessions`.

import { type Command, Option } from 'commander'
import { forAdmin } from '../../../cli/command/flags.ts'
import type { CommandContext } from '../../../cli/command/output.ts'

export function addSessions(program: Command, { out, now, done }: CommandContext): void {
  forAdmin(program.command('sessions'))
    .description('show which users are logged in: seen in the last hour, or with an open watch')
    .argument('[cluster...]', "only users of these UpstreamClusters, by name or glob: 'prod-*'; default: of all")
    .option('--user <user>', 'only this user')
    .option('-l, --selector <selector>', 'only users of UpstreamClusters with these labels: region=eu')
    .option('--limit <n>', 'maximum number of rows', '100')
    .addOption(new Option('-o, --output <format>').choices(['text', 'json']).default('text'))
    .action(async (clusters, options) =>
      done((await import('./sessions.ts')).sessions({ ...options, clusters, out, now })),
    )
}
