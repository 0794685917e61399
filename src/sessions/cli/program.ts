// The flags of `portcullis play`.

import type { Command } from 'commander'
import { type CommandContext, NO_TERMINAL, type Terminal } from '../../cli/command/output.ts'

interface PlayContext extends CommandContext {
  readonly terminal?: Terminal
  /** Writes to standard output what need not be text; absent = it is dropped. */
  readonly outBytes?: (bytes: Uint8Array) => void
}

export function addPlay(
  program: Command,
  { out, err, done, terminal = NO_TERMINAL, outBytes = noBytes }: PlayContext,
): void {
  program
    .command('play')
    .description('play the recording of a session on this terminal')
    .argument('<file>', 'in the --session-recording-dir of the gateway')
    .requiredOption('--key-file <file>', 'the --session-recording-key-file of the gateway')
    .option('--speed <factor>', 'how many times as fast as it was', '1')
    .option('--idle-limit <duration>', 'the longest pause', '2s')
    .option('--text', 'print what was shown as text, without pauses and without control sequences', false)
    .option('--cast', 'print it as an asciicast (version 2), unfiltered, for other players; not for a terminal', false)
    .option('--connection <number>', 'of a port-forward: print the bytes that this connection got; not for a terminal')
    .option('--sent', 'with --connection: the bytes that the client sent', false)
    .action(async (file, options) => {
      await done((await import('./play.ts')).playCommand({ ...options, file, out, err, outBytes, terminal }))
    })
}

function noBytes(): void {
  // For those who start the program within another.
}
