// `npm run fuzz -- [--inputs N] [--seed S] [--workers W]`: a campaign against the HTTP/2 engine. `--input I` repeats one input.
// `npm run fuzz -- --slow [--seconds N] [--parser TEXT] [--part I/N]`: looks for inputs that are slow to read, so long for each parser of
// test/costs/ (`--parser`: whose name has this text; `--part 1/4`: the first quarter of them).

import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { checkInput, makeInput } from './check-input.ts'
import { describeInput, minimise } from './minimise.ts'

interface Share {
  readonly seed: number
  readonly from: number
  readonly to: number
  readonly step: number
  readonly current: Int32Array
  /** The number of the worker, in `current`. */
  readonly number: number
}

/** More heap than this after a collection means that something is kept from input to input. */
const MAX_HEAP_BYTES = 200_000_000
const MEMORY_EVERY = 20_000
/** An input takes a tenth of a millisecond: a worker that is at one for so long hangs. */
const WATCH_MS = 20_000

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      inputs: { type: 'string', default: '10000000' },
      seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
      workers: { type: 'string', default: String(availableParallelism()) },
      input: { type: 'string' },
      slow: { type: 'boolean', default: false },
      seconds: { type: 'string', default: '10' },
      parser: { type: 'string', default: '' },
      part: { type: 'string', default: '1/1' },
    },
  })
  const seed = Number(values.seed)
  if (values.slow) {
    process.exitCode = await slowInputs(seed, Number(values.seconds), values.parser, values.part)
    return
  }
  if (values.input !== undefined) {
    process.exitCode = report(seed, Number(values.input)) ? 1 : 0
    return
  }
  const inputs = Number(values.inputs)
  const workers = Number(values.workers)
  console.log(`fuzzing the HTTP/2 engine: ${inputs} inputs, seed ${seed}, ${workers} workers`)
  const startedMs = performance.now()
  const failure = await campaign(seed, inputs, workers)
  const seconds = (performance.now() - startedMs) / 1_000
  if (failure !== undefined) {
    process.exitCode = 1
    if (failure.hangs) console.error(`HANGS: input ${failure.input} of seed ${seed}:\n${shown(seed, failure.input)}`)
    else report(seed, failure.input)
    return
  }
  console.log(`${inputs} inputs in ${seconds.toFixed(0)} s (${Math.round(inputs / seconds)} a second): nothing found`)
}

/** @returns the exit code: 1 when a slow input was found */
async function slowInputs(seed: number, seconds: number, named: string, part: string): Promise<number> {
  const { PARSERS } = await import('../costs/table.ts')
  const { findSlow } = await import('./slow.ts')
  const [which = 1, of = 1] = part.split('/').map(Number)
  const parsers = PARSERS.filter(({ name }, at) => name.includes(named) && at % of === which - 1)
  console.log(`looking for slow inputs of ${parsers.length} parsers, ${seconds} s each, seed ${seed}`)
  const found = findSlow({ parsers, seed, seconds })
  for (const { parser, recipe, ratio, ns, length } of found) {
    const cost = `${ns.toFixed(0)} ns for each of ${length} characters, ${ratio.toFixed(1)} times as much as in a short one`
    console.error(`SLOW: ${parser}: ${cost}\n  ${JSON.stringify(recipe)}`)
  }
  console.log(found.length === 0 ? 'nothing found' : `${found.length} found`)
  return found.length === 0 ? 0 : 1
}

interface Failure {
  readonly input: number
  readonly hangs: boolean
}

/** Resolves with the first failure, or undefined when there is none. */
async function campaign(seed: number, inputs: number, workers: number): Promise<Failure | undefined> {
  // The input that each worker is at: a shared one is there even when the worker hangs.
  const current = new Int32Array(new SharedArrayBuffer(4 * workers))
  const running: Worker[] = []
  let failure: Failure | undefined
  const fail = (found: Failure): void => {
    failure ??= found
    for (const worker of running) void worker.terminate()
  }
  const exits = Array.from({ length: workers }, (_, i) => {
    const workerData: Share = { seed, from: i, to: inputs, step: workers, current, number: i }
    const worker = new Worker(new URL(import.meta.url), { workerData, argv: [] })
    running.push(worker)
    worker.on('message', (input: number) => fail({ input, hangs: false }))
    return new Promise<void>((resolve, reject) => {
      worker.once('error', reject)
      worker.once('exit', () => resolve())
    })
  })
  const watch = setInterval(watcher(current, inputs, fail), WATCH_MS)
  await Promise.all(exits).finally(() => clearInterval(watch))
  return failure
}

/** Tells how far it is, and of a worker that has been at one input since the last look. */
function watcher(current: Int32Array, inputs: number, fail: (failure: Failure) => void): () => void {
  let before = new Int32Array(current.length).fill(-1)
  let told = 0
  return () => {
    const now = Int32Array.from(current)
    const hanging = now.findIndex((input, i) => input === before[i] && input + current.length < inputs)
    if (hanging >= 0) fail({ input: now[hanging] ?? 0, hangs: true })
    before = now
    const percent = Math.floor((100 * Math.min(...now)) / inputs)
    if (percent < told + 10) return
    told = percent
    console.log(`${percent} %`)
  }
}

function work({ seed, from, to, step, current, number }: Share): void {
  let done = 0
  for (let input = from; input < to; input += step) {
    current[number] = input
    if (checkInput(makeInput(seed, input)) !== '') {
      parentPort?.postMessage(input)
      return
    }
    if (++done % MEMORY_EVERY !== 0) continue
    const { heapUsed } = process.memoryUsage()
    if (heapUsed > MAX_HEAP_BYTES) throw new Error(`${heapUsed} bytes of heap are in use: something is kept`)
  }
}

function shown(seed: number, index: number): string {
  return describeInput(makeInput(seed, index))
}

/** Prints what is wrong with an input, and the least that still shows it. */
function report(seed: number, index: number): boolean {
  const input = makeInput(seed, index)
  const problem = checkInput(input)
  if (problem === '') {
    console.log(`input ${index} of seed ${seed}: nothing found`)
    return false
  }
  console.error(`FAILED: input ${index} of seed ${seed}; again: npm run fuzz -- --seed ${seed} --input ${index}`)
  const least = minimise(input)
  console.error(`${checkInput(least)}\n\n${describeInput(least)}`)
  return true
}

if (isMainThread) await main()
else work(workerData as Share)
