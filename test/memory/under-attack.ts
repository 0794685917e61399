// A gateway in a control group of the size that it has computed for itself, and all attacks of the corpus at once beside another user.

import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { loadCorpus } from '../attacks/corpus.ts'
import { bundledCommand, HOST, type Scene, startScene } from '../attacks/scene.ts'
import { SMALL_PATH } from '../attacks/wire/http2.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { endWithThisProcess, guarded } from '../harness/process.ts'
import type { AttackAll } from './attack-all.ts'
import { createControlGroup } from './control-group.ts'

/** Each runs a part of the attacks. */
const ATTACKERS = 4
const BETWEEN_MS = 20
/** Characters that are told of a failure. */
const LONGEST_WHY = 200

export interface UnderAttack {
  /** What the gateway says is the most that it takes. */
  readonly ceilingBytes: number
  /** The most that was resident. */
  readonly residentBytes: number
  /** Processes that the kernel ended, and times that the group was full. */
  readonly killed: number
  readonly reached: number
  readonly running: boolean
  /** Gateway threads that were replaced. */
  readonly restarts: number
  readonly bystander: Answered & { readonly inTheEnd: number }
}

interface Answered {
  readonly answered: number
  readonly failed: number
  /** What failed: by status and the beginning of the body, or the error -> how often. */
  readonly failures: Readonly<Record<string, number>>
}

export interface AttackOptions {
  readonly threads: number
  readonly limitBytes: number
  readonly forMs: number
}

export async function attackWithin({ threads, limitBytes, forMs }: AttackOptions): Promise<UnderAttack> {
  const command = (await bundledCommand()).map((part) => `"${part}"`).join(' ')
  const group = createControlGroup(limitBytes)
  const [shell = '', flag = '', , procs = ''] = group.prefix
  const script = `echo $$ > "$0" && shift && exec ${command} "$@"`
  const scene = await startScene({ threads, gatewayPrefix: [shell, flag, script, procs] })
  const attackers: ChildProcess[] = []
  try {
    for (const attacks of await partsOf(scene)) attackers.push(startAttacker({ attacks }))
    const bystander = await servedMeanwhile(scene, forMs)
    await Promise.all(attackers.map(stopAttacker))
    const { gateway } = scene.embedded
    const inTheEnd = (await askAsBystander(scene)).status
    const metrics = await gateway.metrics()
    return {
      ceilingBytes: sample(metrics, 'memory_ceiling_bytes'),
      residentBytes: highestResident(gateway.pid),
      killed: group.killed(),
      reached: group.reached(),
      running: gateway.running,
      restarts: sample(metrics, 'thread_restarts_total'),
      bystander: { ...bystander, inTheEnd },
    }
  } finally {
    for (const attacker of attackers) attacker.kill('SIGKILL')
    await scene.stop()
    group.remove()
  }
}

async function partsOf(scene: Scene): Promise<AttackAll['attacks'][]> {
  const parts: AttackAll['attacks'][number][][] = Array.from({ length: ATTACKERS }, () => [])
  let next = 0
  for (const [name, attack] of await loadCorpus()) {
    for (const who of attack.who) {
      parts[next++ % ATTACKERS]?.push({ name, target: scene.target(who, `attacker-${next}`) })
    }
  }
  return parts
}

function startAttacker(what: AttackAll): ChildProcess {
  const [command, args] = guarded('nice', ['-n', '19', process.execPath, join(import.meta.dirname, 'attack-all.ts')])
  const env = { ...process.env }
  delete env['NODE_TEST_CONTEXT']
  const child = spawn(command, args, { stdio: ['pipe', 'ignore', 'ignore'], env })
  endWithThisProcess(child)
  child.stdin?.on('error', () => undefined)
  child.stdin?.write(`${JSON.stringify(what)}\n`)
  return child
}

function stopAttacker(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  return new Promise((resolve) => {
    child.once('exit', () => resolve())
    child.stdin?.end()
  })
}

async function servedMeanwhile(scene: Scene, forMs: number): Promise<Answered> {
  let answered = 0
  const failures: Record<string, number> = {}
  const endMs = performance.now() + forMs
  while (performance.now() < endMs) {
    const { status, why } = await askAsBystander(scene)
    if (status === 200) answered++
    else failures[`${status} ${why}`] = (failures[`${status} ${why}`] ?? 0) + 1
    await pause(BETWEEN_MS)
  }
  return { answered, failed: Object.values(failures).reduce((sum, count) => sum + count, 0), failures }
}

let session: ReturnType<typeof h2Connect> | undefined

/** On one connection, another one when it has ended. Status 0 = no answer. */
async function askAsBystander(scene: Scene): Promise<{ readonly status: number; readonly why: string }> {
  if (session === undefined || session.destroyed || session.closed) {
    const { port } = scene.embedded.gateway
    session = h2Connect({ port, serverName: HOST, certificate: scene.bystander })
  }
  try {
    const { status, body, resetCode } = await h2Request(session, [':path', SMALL_PATH])
    return { status, why: status === 0 ? `reset ${resetCode}` : body.toString().slice(0, LONGEST_WHY) }
  } catch (error) {
    return { status: 0, why: String(error).slice(0, LONGEST_WHY) }
  }
}

function highestResident(pid: number): number {
  return 1024 * Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)
}

/** The sum of all rows. */
function sample(metrics: string, name: string): number {
  const rows = metrics.matchAll(new RegExp(`^portcullis_${name}(?:\\{[^}]*\\})? ([\\d.e+]+)`, 'gm'))
  return Array.from(rows, ([, value]) => Number(value)).reduce((sum, value) => sum + value, 0)
}
