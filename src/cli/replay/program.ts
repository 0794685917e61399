// The flags of `portcullis replay`.

import { type Command, Option } from 'commander'
import { forControlPlane } from '../command/flags.ts'
import type { CommandContext } from '../command/output.ts'

interface Context extends CommandContext {
  readonly input: AsyncIterable<string>
}

export function addReplay(program: Command, { input, out, err, done }: Context): void {
  forControlPlane(program.command('replay'))
    .description('show what another configuration would have done with the requests of an access log')
    .argument('<log>', 'access log of the gateway, plain or compressed by gzip; - is standard input')
    .option('--config <path>', 'directory or file of UpstreamClusters; default: the API server that holds them')
    .option('--compare <path>', 'directory or file to compare with; default: the results in the log')
    .option('--fail-on-change', 'exit with 2 if a request would get another answer', false)
    .addOption(new Option('-o, --output <format>').choices(['text', 'json']).default('text'))
    .action(async (log, options) => done((await import('./replay.ts')).replay({ ...options, log, input, out, err })))
}
