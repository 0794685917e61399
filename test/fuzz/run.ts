// `npm run fuzz -- [--inputs N] [--seed S] [--workers W]`: a campaign against the HTTP/2 engine. `--input I` repeats one input.

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
}

type Message = { readonly done: number } | { readonly failed: number; readonly problem: string }

/** More heap than this after a collection means that something is kept from input to input. */
const MAX_HEAP_BYTES = 200_000_000
const REPORT_EVERY = 20_000

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      inputs: { type: 'string', default: '10000000' },
      seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
      workers: { type: 'string', default: String(availableParallelism()) },
      input: { type: 'string' },
    },
  })
  const seed = Number(values.seed)
  if (values.input !== undefined) {
    process.exitCode = report(seed, Number(values.input)) ? 1 : 0
    return
  }
  const inputs = Number(values.inputs)
  const workers = Number(values.workers)
  console.log(`fuzzing the HTTP/2 engine: ${inputs} inputs, seed ${seed}, ${workers} workers`)
  const startedMs = performance.now()
  const failed = await campaign(seed, inputs, workers)
  const seconds = (performance.now() - startedMs) / 1_000
  if (failed.length > 0) {
    report(seed, Math.min(...failed))
    process.exitCode = 1
    return
  }
  console.log(`${inputs} inputs in ${seconds.toFixed(0)} s (${Math.round(inputs / seconds)} a second): nothing found`)
}

/** Resolves with the numbers of inputs that failed; each worker stops at its first one. */
async function campaign(seed: number, inputs: number, workers: number): Promise<number[]> {
  const failed: number[] = []
  const done = new Array<number>(workers).fill(0)
  let told = 0
  await Promise.all(
    Array.from({ length: workers }, (_, i) => {
      const share: Share = { seed, from: i, to: inputs, step: workers }
      const worker = new Worker(new URL(import.meta.url), { workerData: share, argv: [] })
      worker.on('message', (message: Message) => {
        if ('failed' in message) failed.push(message.failed)
        else done[i] = message.done
        const percent = Math.floor((100 * done.reduce((sum, n) => sum + n, 0)) / inputs)
        if (percent < told + 10) return
        told = percent
        console.log(`${percent} %`)
      })
      return new Promise<void>((resolve, reject) => {
        worker.once('error', reject)
        worker.once('exit', () => resolve())
      })
    }),
  )
  return failed
}

function work({ seed, from, to, step }: Share): void {
  let done = 0
  for (let index = from; index < to; index += step) {
    const problem = checkInput(makeInput(seed, index))
    if (problem !== '') {
      parentPort?.postMessage({ failed: index, problem })
      return
    }
    if (++done % REPORT_EVERY !== 0) continue
    parentPort?.postMessage({ done })
    const { heapUsed } = process.memoryUsage()
    if (heapUsed > MAX_HEAP_BYTES) throw new Error(`${heapUsed} bytes of heap are in use: something is kept`)
  }
  parentPort?.postMessage({ done })
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
