// The commands that look inside a running gateway.

import { Argument, type Command } from 'commander'
import { forAdmin, parseWholeNumber } from '../command/flags.ts'
import type { CommandContext } from '../command/output.ts'

export function addInside(program: Command, { out, err, done }: CommandContext): void {
  forAdmin(program.command('log-level'))
    .description('show the log level of all replicas of a running gateway; with LEVEL, change it for a while')
    .addArgument(new Argument('[level]').choices(['debug', 'info', 'warn', 'error']))
    .option('--for <duration>', 'time after which the configured level applies again', '10m')
    .action(async (level, options) => {
      const given = { ...options, ...(level !== undefined && { level }), out, err }
      return done((await import('./log-level.ts')).logLevel(given))
    })
  forAdmin(program.command('support-bundle'))
    .description('write version, settings, state, metrics and log of a running gateway into a file, without secrets')
    .option('--file <file>', 'file to write; must not exist', 'portcullis-support.tar.gz')
    .option('--profile <seconds>', 'include a CPU profile of this duration', parseWholeNumber, 0)
    .action(async (options) => done((await import('./support-bundle.ts')).supportBundle({ ...options, out, err })))
}
