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
    .argument('<file>', 'a recording in the --session-recording-dir of the gateway')
    .requiredOption('--key-file <file>', 'the --session-recording-key-file of the gateway')
    .option('--speed <factor>', 'playback speed: 2 is twice as fast', '1')
    .option('--idle-limit <duration>', 'longer pauses are shortened to this', '2s')
    .option('--text', 'print the output as plain text, without pauses or control sequences', false)
    .option(
      '--cast',
      'print an asciicast (version 2), unfiltered, for other players; redirect it, do not print it to a terminal',
      false,
    )
    .option(
      '--connection <number>',
      'port-forwards: print the bytes that the client received on this connection; redirect them, do not print them to a terminal',
    )
    .option('--sent', 'with --connection: print the bytes that the client sent instead', false)
    .action(async (file, options) => {
      await done((await import('./play.ts')).playCommand({ ...options, file, out, err, outBytes, terminal }))
    })
}

function noBytes(): void {
  // For those who start the program within another.
}
