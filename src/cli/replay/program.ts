// The flags of `portcullis replay` and `portcullis suggest`.

import { type Command, Option } from 'commander'
import { forControlPlane, wholeNumber } from '../command/flags.ts'
import type { CommandContext } from '../command/output.ts'

interface Context extends CommandContext {
  readonly input: AsyncIterable<string>
}

export function addReplay(program: Command, { input, out, err, done }: Context): void {
  forControlPlane(program.command('replay'))
    .description('what another configuration would have done with the requests of an access log')
    .argument('<log>', 'access log of the gateway, plain or compressed by gzip; - is standard input')
    .option('--config <path>', 'directory or file of UpstreamClusters; default: the API server that holds them')
    .option('--compare <path>', 'directory or file with which it is compared; default: what the log says was done')
    .option('--fail-on-change', 'exit code 2 when a request would get another answer', false)
    .addOption(new Option('-o, --output <format>').choices(['text', 'json']).default('text'))
    .action(async (log, options) => done((await import('./replay.ts')).replay({ ...options, log, input, out, err })))
  program
    .command('suggest')
    .description('settings from what was seen')
    .command('limits')
    .description('flow control schemas and dispatch policies, in shadow mode, from the peaks of an access log')
    .argument('<log>', 'access log of the gateway, plain or compressed by gzip; - is standard input')
    .option('--cluster <name>', 'only this UpstreamCluster; default: all in the log')
    .option('--headroom <factor>', 'what a limit lets pass for one request that was seen', '1.5')
    .option('--min-duration <duration>', 'time that the log has to cover', '24h')
    .option('--min-requests <n>', 'requests that have to be in it, of each cluster', wholeNumber, 1000)
    .action(async (log, options) =>
      done((await import('./suggest-limits.ts')).suggestLimitsCommand({ ...options, log, input, out, err })),
    )
}
