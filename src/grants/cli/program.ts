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
    .description('request more rights in clusters for a limited time, approve the requests of others, and end access')
  forClusters(access.command('request'))
    .description('request access for yourself, another user or a group; another user must approve it')
    .requiredOption('--group <group>', 'group that is added to the requests; may be repeated', collect, [])
    .requiredOption('--for <duration>', 'how long access lasts once it has begun: 1m to 12h')
    .requiredOption('--reason <text>', 'why access is needed, for approvers and the audit log')
    .option('--user <user>', 'user that gets access, as the clusters know it; default: you')
    .option('--members-of <group>', 'group whose members get access, instead of a single user')
    .option('--not-before <time>', 'when access begins, RFC 3339; default: when it is approved')
    .action(async (clusters, options) =>
      done((await import('./access.ts')).requestAccess({ ...options, clusters, out, err })),
    )
  forControlPlane(access.command('approve'))
    .description('show a request for access, and approve it')
    .argument('<name>', 'the name of the AccessGrant')
    .option('-y, --yes', 'do not ask', false)
    .action(async (name, options) =>
      done((await import('./access.ts')).approveAccess({ ...options, name, ask: terminal.ask, out, err })),
    )
  forControlPlane(access.command('list'))
    .description('list active and requested access')
    .option('--ended', 'also list access that has ended', false)
    .option('-o, --output <format>', 'json; default: print a table')
    .action(async (options) => done((await import('./access.ts')).listAccess({ ...options, out, err })))
  forControlPlane(access.command('end'))
    .description('end access now, including the watches and sessions that it allowed')
    .argument('<name>', 'the name of the AccessGrant')
    .action(async (name, options) => done((await import('./access.ts')).endAccess({ ...options, name, out, err })))
}
