// The same kubectl commands on two ways to one cluster, and what has to be equal of their output: everything but what the
// cluster creates for every object, and the address that the client was given.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { waitFor } from '../wait.ts'
import { type KubectlOptions, type KubectlResult, kubectl, type RunningKubectl, startKubectl } from './kubectl.ts'

export interface SideOptions {
  /** Names what this side makes: its namespace, and the ends of the names of what has none. Shown as `SIDE`. */
  readonly name: string
  readonly kubeconfig: string
  /** A kubectl other than the one built for the tests. */
  readonly program?: string
}

/** What one command came to, after `normalise`. */
export interface Step {
  readonly command: string
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

type Extra = Pick<KubectlOptions, 'stdin' | 'env' | 'cwd'> & {
  /** Default: the side's own. */
  readonly namespace?: string
}
/** Words with one space between them, or the arguments where one has a space in it. */
type Command = string | readonly string[]

/** One way to a cluster, and what was done on it. */
export class Side {
  readonly name: string
  readonly steps: Step[] = []
  readonly #options: KubectlOptions

  constructor(options: SideOptions) {
    this.name = options.name
    // One HOME for all: discovery is read once, as on a person's machine.
    const home = mkdtempSync(join(tmpdir(), `portcullis-${options.name}-`))
    this.#options = {
      kubeconfig: options.kubeconfig,
      home,
      ...(options.program !== undefined && { program: options.program }),
    }
  }

  /** Runs a command that must succeed. */
  ok(command: Command, extra: Extra = {}): Promise<KubectlResult> {
    return this.#run(true, command, extra)
  }

  /** Runs a command that must fail, and say why. */
  fails(command: Command, extra: Extra = {}): Promise<KubectlResult> {
    return this.#run(false, command, extra)
  }

  /** Repeats a command until it prints `pattern`. That is not compared: how often it is run depends on when. */
  async until(command: Command, pattern: RegExp): Promise<void> {
    await waitFor(`kubectl ${String(command)} to print ${pattern}`, async () =>
      pattern.test((await kubectl(this.#args(command), this.#options)).stdout),
    )
  }

  /** A command that runs on; compared by what it has printed when it is handed to `ended`. */
  start(command: Command): Promise<RunningKubectl> {
    return startKubectl(this.#args(command), this.#options)
  }

  async ended(running: RunningKubectl): Promise<void> {
    const { stdout, stderr } = await running.stop()
    this.#record(['(started)'], { code: 0, stdout, stderr })
  }

  /** Removes what kubectl keeps on disk. */
  forget(): void {
    rmSync(this.#options.home ?? '', { recursive: true, force: true })
  }

  async #run(mustSucceed: boolean, command: Command, extra: Extra): Promise<KubectlResult> {
    const args = this.#args(command, extra.namespace)
    const result = await kubectl(args, { ...this.#options, ...extra })
    this.#record(args, result, extra.namespace === undefined)
    const succeeded = result.code === 0 || (args.includes('diff') && isDifference(result))
    if (mustSucceed === succeeded) return result
    assert.fail(`kubectl ${args.join(' ')} on ${this.name}: code ${result.code}: ${result.stdout}${result.stderr}`)
  }

  #args(command: Command, namespace = this.name): string[] {
    return [`--namespace=${namespace}`, ...(typeof command === 'string' ? command.split(' ') : command)]
  }

  /** `own`: the side's name may stand for the side, and not for one of the things that all sides see. */
  #record(args: readonly string[], result: Pick<KubectlResult, 'code' | 'stdout' | 'stderr'>, own = true): void {
    const normal = (text: string): string => normalise(own ? text.replaceAll(this.name, 'SIDE') : text)
    const { code, stdout, stderr } = result
    this.steps.push({ command: normal(args.join(' ')), code, stdout: normal(stdout), stderr: normal(stderr) })
  }
}

export type Scenario = (side: Side) => Promise<void>

/** Plays the scenario on all sides at once, then compares each pair: direct first, through the gateway second. */
export async function assertParity(pairs: readonly (readonly [Side, Side])[], scenario: Scenario): Promise<void> {
  const sides = pairs.flat()
  const before = sides.map((side) => side.steps.length)
  const played = await Promise.allSettled(sides.map(scenario))
  for (const [direct, through] of pairs) {
    const stepsOf = (side: Side): Step[] => side.steps.slice(before[sides.indexOf(side)])
    const [wanted, got] = [stepsOf(direct), stepsOf(through)]
    for (const [i, expected] of wanted.entries()) assert.deepEqual(got[i], expected, `${through.name}: step ${i}`)
    assert.equal(got.length, wanted.length)
  }
  for (const result of played) if (result.status === 'rejected') throw result.reason
}

/** `kubectl diff` ends with 1 when there is a difference. */
function isDifference({ code, stderr }: KubectlResult): boolean {
  return code === 1 && stderr === ''
}

/** What two ways to one cluster may show differently, and nothing else. */
const DIFFERENT: readonly (readonly [RegExp, string])[] = [
  [/https:\/\/[a-z0-9.-]+:\d+(\/clusters\/[a-z0-9.-]+)?/g, 'https://SERVER'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, 'UID'],
  [/(resourceVersion"?: ?)"\d+"/g, '$1"VERSION"'],
  [/(continue"?: ?)"[\w-]{20,}"/g, '$1"TOKEN"'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, 'TIME'],
  [/\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000/g, 'TIME'],
  [/\/tmp\/(LIVE|MERGED)-\d+/g, '/tmp/$1'],
  [/\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, 'TIME'],
  // Hashes and random ends of names, in an alphabet of Kubernetes' own (apimachinery/pkg/util/rand).
  [/-[bcdfghjklmnpqrstvwxz2456789]{5,10}\b/g, '-RANDOM'],
  [/\b10\.\d+\.\d+\.\d+\b/g, 'IP'],
  [/\bnode-\d+\b/g, 'NODE'],
  [/(^|[\s(])((\d+y)?(\d+d)?(\d+h)?(\d+m)?\d+[smhdy])(?=[\s)]|$)/gm, '$1AGE'],
  // Another client has written in between.
  [/(Too large resource version: \d+, current:) \d+/g, '$1 VERSION'],
  // The same in a Table.
  [/"(\d+[smhdy])+"/g, '"AGE"'],
  [/^([EWI])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ /gm, '$1 TIME '],
  // Column widths depend on the content.
  [/ {2,}/g, '  '],
  [/ +$/gm, ''],
]

export function normalise(text: string): string {
  let normal = text
  for (const [pattern, replacement] of DIFFERENT) normal = normal.replace(pattern, replacement)
  return normal
}
