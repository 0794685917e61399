// `portcullis degrade --local`: throws the switch on this machine, while the API server of the objects is unreachable. Requires write
// access
// to the gateway's data directory; the gateway picks the file up, and writes the result next to it.

import { readPositiveDuration } from '../../cli/client/control-plane.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { parseDuration } from '../../kit/core/text/duration.ts'
import { textTable } from '../../kit/core/text/text-table.ts'
import { switchesOf } from '../io/local-switches/switch-directory.ts'
import {
  isDirectory,
  type LocalSwitch,
  machineUser,
  removeSwitch,
  switchDirectory,
  writeSwitch,
} from '../io/local-switches/switch-file.ts'
import { readSwitchStates, type SwitchState, whyUnread } from '../io/local-switches/switch-state.ts'
import { type DegradeOptions, readChange, type SwitchChange } from './change.ts'

const HEAD = ['CLUSTER', 'MODE', 'BY', 'AT', 'UNTIL', 'IN FORCE', 'REASON']
const POLL_MS = 100
const DEFAULT_TIMEOUT = '5s'

/** Resolves with the exit code: 1 after an error, or if no gateway picked it up in time. */
export async function degradeLocally(options: DegradeOptions): Promise<number> {
  const { cluster, out, err, now, off = false, dataDir = 'data' } = options
  try {
    requireDataDir(dataDir)
    checkFlags(options)
    const timeoutMs = readPositiveDuration('--timeout', options.timeout ?? DEFAULT_TIMEOUT, parseDuration)
    const deadlineMs = now() + timeoutMs
    const unread = whyUnread(dataDir)
    if (off) return unread === '' ? await lift(options, dataDir, deadlineMs) : removeUnread(options, dataDir)
    const change = readChange({ ...options, recover: false })
    if (change === undefined) return showLocal(dataDir, out, err, cluster)
    const local = localOf(cluster, change, now())
    if (unread !== '') throw new UserError(`${dataDir}: ${unread}`, fixOfUnread(options))
    writable(() => writeSwitch(dataDir, local), dataDir)
    if (change.mode !== 'Off')
      err(
        'warning: without the API server it cannot be checked whether kube-controller-manager and kubelets come through the gateway\n',
      )
    return await untilInForce(local, options, dataDir, deadlineMs)
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    err(`error: ${error.message}; ${error.fix}\n`)
    return 1
  }
}

/** Adds this machine's switches to `--status`, if any. @returns 1 if one is not in force */
export function showLocal(
  dataDir: string,
  out: (text: string) => void,
  err: (text: string) => void,
  cluster?: string,
): number {
  const unread = whyUnread(dataDir)
  const { switches: known, errors } = unread === '' ? readSwitchStates(dataDir) : { switches: [], errors: {} }
  const switches = [...known, ...untakenSwitches(dataDir, known, unread)]
  const shown = switches.filter((one) => cluster === undefined || one.cluster === cluster)
  for (const [file, why] of Object.entries(errors)) err(`error: ${file} is ignored: ${why}\n`)
  if (shown.length === 0) out(`no local degrade switch on this machine${unread === '' ? '' : `: ${unread}`}\n`)
  else out(textTable([HEAD, ...shown.map(rowOf)]))
  for (const { cluster: name, problem } of shown) if (problem !== '') err(`error: ${name}: ${problem}\n`)
  return shown.every(({ inForceAt }) => inForceAt !== '') && Object.keys(errors).length === 0 ? 0 : 1
}

/** Files that no gateway has processed yet. */
function untakenSwitches(dataDir: string, known: readonly SwitchState[], unread: string): readonly SwitchState[] {
  const { switches } = switchesOf(dataDir)
  const untaken = [...switches.values()].filter((one) => !known.some(({ cluster }) => cluster === one.cluster))
  const problem = unread === '' ? 'no gateway has applied it' : `it is not in force: ${unread}`
  return untaken.map((local) => ({ ...local, inForceAt: '', problem }))
}

/** Silently removes a leftover switch. */
function removeUnread({ cluster, out, err }: DegradeOptions, dataDir: string): number {
  if (writable(() => removeSwitch(dataDir, cluster), dataDir)) {
    out(`${cluster}: the file of the local switch is removed; it was not in force\n`)
    return 0
  }
  err(`error: there is no local degrade switch of ${cluster} in ${switchDirectory(dataDir)}\n`)
  return 1
}

function fixOfUnread({ cluster }: DegradeOptions): string {
  return `leave --local out (portcullis degrade ${cluster} --mode ...); with --source files write spec.degrade into the file of the cluster`
}

function rowOf({ cluster, mode, by, at, expiresAt, inForceAt, reason, shadow }: SwitchState): string[] {
  const until = expiresAt === '' ? '-' : expiresAt
  return [cluster, shadow ? `${mode} (shadow)` : mode, by, at, until, inForceAt === '' ? 'no' : inForceAt, reason]
}

async function lift({ cluster, out, err, now }: DegradeOptions, dataDir: string, deadlineMs: number): Promise<number> {
  if (!writable(() => removeSwitch(dataDir, cluster), dataDir)) {
    err(`error: there is no local degrade switch of ${cluster} in ${switchDirectory(dataDir)}; see --local --status\n`)
    return 1
  }
  for (;;) {
    if (!readSwitchStates(dataDir).switches.some((one) => one.cluster === cluster)) {
      out(`${cluster}: the local switch is lifted; the mode of the object is in force\n`)
      return 0
    }
    if (now() >= deadlineMs) break
    await pause()
  }
  err(`error: the file is removed, but no gateway has noticed it: ${fixOf(dataDir)}\n`)
  return 1
}

async function untilInForce(
  local: LocalSwitch,
  { out, err, now }: DegradeOptions,
  dataDir: string,
  deadlineMs: number,
): Promise<number> {
  const { cluster, mode, by } = local
  const isIt = (one: { readonly cluster: string; readonly at: string; readonly by: string }): boolean =>
    one.cluster === cluster && one.at === local.at && one.by === by
  for (;;) {
    const { switches, ended } = readSwitchStates(dataDir)
    const over = ended.find(isIt)
    if (over !== undefined) {
      out(`${cluster}: degrade mode ${mode}: ${over.outcome}\n`)
      return over.outcome.startsWith('written') || over.outcome === 'the object says the same' ? 0 : 1
    }
    const known = switches.find(isIt)
    if (known !== undefined && known.inForceAt !== '') {
      out(
        `${cluster}: degrade mode ${mode} in force in all threads of this gateway since ${known.inForceAt}, by ${by}\n`,
      )
      out('it is written to the object when its API server answers; other replicas need the same command\n')
      return 0
    }
    if (now() >= deadlineMs) {
      const why = known === undefined || known.problem === '' ? 'no gateway has applied it' : known.problem
      err(`error: it is written, but not in force: ${why}; ${fixOf(dataDir)}\n`)
      return 1
    }
    await pause()
  }
}

function localOf(cluster: string, change: SwitchChange, nowMs: number): LocalSwitch {
  if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(cluster)) {
    throw new UserError(
      `${JSON.stringify(cluster)} is not a name of an UpstreamCluster`,
      'write it as the object has it',
    )
  }
  const { mode, reason, expiresAt, shadow } = change
  const ends = expiresAt ?? ''
  return {
    cluster,
    mode,
    reason: reason ?? '',
    expiresAt: ends,
    shadow: shadow === true,
    by: machineUser(),
    at: new Date(nowMs).toISOString(),
  }
}

function checkFlags({ recover, force, watch, off, mode, status, kubeconfig, context }: DegradeOptions): void {
  if (recover === true || watch === true) {
    throw new UserError('--recover and --watch need the API server', 'leave them out, or --local')
  }
  if (kubeconfig !== undefined || context !== undefined || force === true) {
    throw new UserError('--local does not use an API server', 'leave --kubeconfig, --context and --force out')
  }
  if (off === true && (mode !== undefined || status)) {
    throw new UserError('--off lifts the local switch, and does nothing else', 'leave --mode and --status out')
  }
}

function requireDataDir(dataDir: string): void {
  if (isDirectory(dataDir)) return
  throw new UserError(`there is no directory ${dataDir}`, 'give --data-dir as the gateway has it')
}

function writable<T>(action: () => T, dataDir: string): T {
  try {
    return action()
  } catch (error) {
    if (error instanceof UserError) throw error
    const why = errorMessage(error)
    throw new UserError(
      `cannot write to ${switchDirectory(dataDir)}: ${why}`,
      "run it as the gateway's user, or as root",
    )
  }
}

function fixOf(dataDir: string): string {
  return `is one running with --source kubernetes and --data-dir ${dataDir}?`
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, POLL_MS))
}
