// The program for laptops: the commands of users, and nothing of a gateway. build/login/ makes an executable of it, which needs no Node.

import process from 'node:process'
import { Command } from 'commander'
import { reportUserErrors } from '../../cli/command/output.ts'
import { VERSION } from '../../kit/io/program/build.ts'
import { addLogin } from '../cli/program.ts'

const out = (text: string): void => void process.stdout.write(text)
const err = (text: string): void => void process.stderr.write(text)

async function run(argv: readonly string[]): Promise<number> {
  let code = 0
  const done = async (result: Promise<number> | number): Promise<void> => {
    code = await result
  }
  const program = new Command('portcullis')
    .description('Log in at an OpenID provider, for kubectl and other clients of clusters behind a Portcullis gateway')
    .version(VERSION)
    .showHelpAfterError('(portcullis help lists all commands; portcullis help COMMAND shows what one takes)')
    .exitOverride()
    .configureOutput({ writeOut: out, writeErr: err })
  addLogin(program, { out, err, now: Date.now, done })
  try {
    await program.parseAsync(argv, { from: 'user' })
  } catch (error) {
    const exit: unknown = error instanceof Error ? Reflect.get(error, 'exitCode') : undefined
    if (typeof exit !== 'number') throw error
    return exit
  }
  return code
}

void reportUserErrors(err, () => run(process.argv.slice(2))).then((code) => {
  process.exitCode = code
})
