// The flags of `portcullis access`.

import type { Command } from 'commander'
import { collect, forClusters, forControlPlane } from '../../cli/command/flags.ts'
import { type CommandContext, NO_TERMINAL, type Terminal } from '../../cli/command/output.ts'

interface AccessContext extends CommandContext {
  readonly terminal?: Terminal
}

export function addAccess(program: Command, { out, err, done, terminal = NO_TERMINAL }: AccessContext): void {
  const access = program
    .command('access')
    .description('ask for more rights on clusters for a time, approve what others have asked for, and end it')
  forClusters(access.command('request'))
    .description('ask for access: for you, or for another user or a group; another user has to approve it')
    .requiredOption('--group <group>', 'group that requests have in addition; may be repeated', collect, [])
    .requiredOption('--for <duration>', 'how long, from the approval on: 1m to 12h')
    .requiredOption('--reason <text>', 'why, for approvers and the record')
    .option('--user <user>', 'the user who gets it, as the clusters know it; default: you')
    .option('--members-of <group>', 'instead, all members of this group')
    .option('--not-before <time>', 'when it begins, RFC 3339; default: when it is approved')
    .action(async (clusters, options) =>
      done((await import('./request.ts')).requestAccess({ ...options, clusters, out, err })),
    )
  forControlPlane(access.command('approve'))
    .description('show what is asked for, and approve it')
    .argument('<name>', 'the name of the AccessGrant')
    .option('-y, --yes', 'do not ask', false)
    .action(async (name, options) =>
      done((await import('./approve.ts')).approveAccess({ ...options, name, ask: terminal.ask, out, err })),
    )
  forControlPlane(access.command('list'))
    .description('show who has access, and who asks for it')
    .option('--ended', 'those that have ended, too', false)
    .option('-o, --output <format>', 'json; default: a table')
    .action(async (options) => done((await import('./list.ts')).listAccess({ ...options, out, err })))
  forControlPlane(access.command('end'))
    .description('end access now, with the watches and sessions that it let in')
    .argument('<name>', 'the name of the AccessGrant')
    .action(async (name, options) => done((await import('./end.ts')).endAccess({ ...options, name, out, err })))
}
