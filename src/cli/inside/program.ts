// The commands that look inside a running gateway.

import { Argument, type Command } from 'commander'
import { forAdmin, parseWholeNumber } from '../command/flags.ts'
import type { CommandContext } from '../command/output.ts'

export function addInside(program: Command, { out, err, done }: CommandContext): void {
  forAdmin(program.command('log-level'))
    .description('the log level of all replicas of a running gateway; with LEVEL changes it for a while')
    .addArgument(new Argument('[level]').choices(['debug', 'info', 'warn', 'error']))
    .option('--for <duration>', 'after which the level of the settings is back', '10m')
    .action(async (level, options) => {
      const given = { ...options, ...(level !== undefined && { level }), out, err }
      return done((await import('./log-level.ts')).logLevel(given))
    })
  forAdmin(program.command('support-bundle'))
    .description('writes version, settings, state, metrics and log of a running gateway into a file, without secrets')
    .option('--file <file>', 'to write; must not exist', 'portcullis-support.tar.gz')
    .option('--profile <seconds>', 'with a CPU profile that takes this long', parseWholeNumber, 0)
    .action(async (options) => done((await import('./support-bundle.ts')).supportBundle({ ...options, out, err })))
}
