// What `npm test` does first: brings the foreign programs that tests run, packages of the machine and what is built with Go. Whatever is
// missing that it cannot bring is one line, and exit code 1, before anything has been waited for.

import { spawnSync } from 'node:child_process'
import process from 'node:process'
import { binaries, binariesAreBuilt, hasGo, NO_GO, rareBinary } from './binaries.ts'
import { CRD_PROJECTS, crdsAreThere, crdsOf } from './clusters/third-party-crds.ts'
import { type Command, planPackages, thisMachine } from './packages.ts'
import { PYTHON_PACKAGES, type PythonPackages, pythonWith } from './python/python.ts'

const err = (line: string): void => void process.stderr.write(`${line}\n`)

process.exitCode = await prepare()

async function prepare(): Promise<number> {
  const machine = thisMachine()
  const plan = planPackages(machine)
  const needsGo = (!binariesAreBuilt() || !crdsAreThere()) && !hasGo()
  if (plan.action === 'ask') err(plan.line)
  if (needsGo) err(NO_GO)
  if (plan.action === 'ask' || needsGo) return 1
  if (plan.action === 'install') {
    err(`installing ${plan.packages.join(', ')} (Debian's packages): about half a minute`)
    for (const command of plan.commands) if (!run(command)) return 1
    const left = planPackages(machine)
    if (left.action !== 'nothing') {
      err(left.action === 'ask' ? left.line : `${left.packages.join(', ')}: installed, but not on the PATH`)
      return 1
    }
  }
  try {
    await binaries()
    await rareBinary('versitygw')
    for (const project of CRD_PROJECTS) crdsOf(project)
    // Only some tests need them, and say so when they are skipped.
    for (const packages of Object.keys(PYTHON_PACKAGES) as PythonPackages[]) {
      const python = await pythonWith(packages)
      if ('missing' in python) err(python.missing)
    }
  } catch (error) {
    err(error instanceof Error ? error.message : String(error))
    return 1
  }
  return 0
}

/** Its output goes to stderr; a failure was reported. */
function run(command: Command): boolean {
  const [program = '', ...args] = command
  const { status, error } = spawnSync(program, args, { stdio: ['inherit', 2, 2] })
  if (status === 0) return true
  err(`${command.join(' ')} failed${error === undefined ? '' : `: ${error.message}`}`)
  return false
}
