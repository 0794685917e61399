// Direct, HAProxy and Portcullis side by side in one run; medians of five. `npm run bench` prints the tables.
// Needs Debian's packages haproxy and nghttp2 (h2load, nghttpd).

import { execFile } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { type ClientHttp2Session, connect } from 'node:http2'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { cpuSeconds, HOST, type Program, Programs, residentBytes, TARGET, TOKEN } from './programs.ts'

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5)
const FULL_LOAD_REQUESTS = 60_000
/** A JavaScript proxy needs some to be compiled. */
const WARM_UP_REQUESTS = 60_000
const FIXED_CLIENTS = 8
const FIXED_RATE_EACH = 250
const FIXED_SECONDS = 6
const WATCHES = 5_000
const WATCHES_PER_CONNECTION = 100

const exec = promisify(execFile)

interface Sample {
  readonly perSecond: number
  readonly cpuMicros: number
}

interface Latency extends Sample {
  readonly p50: number
  readonly p99: number
}

function h2load(program: Program, args: readonly string[]): Promise<{ stdout: string }> {
  const connectTo = `--connect-to=127.0.0.1:${program.port}`
  const url = `https://${HOST}:${program.port}${TARGET}`
  return exec('h2load', [...args, connectTo, '-H', `authorization: Bearer ${TOKEN}`, url])
}

function checkAllOk(stdout: string, name: string): number {
  const ok = Number(/status codes: (\d+) 2xx/.exec(stdout)?.[1] ?? 0)
  const total = Number(/requests: (\d+) total/.exec(stdout)?.[1] ?? 0)
  const done = Number(/(\d+) succeeded/.exec(stdout)?.[1] ?? 0)
  if (ok === 0 || ok !== done) throw new Error(`${name}: ${ok} of ${total} requests succeeded\n${stdout}`)
  return ok
}

async function fullLoad(program: Program, requests: number): Promise<Sample> {
  const before = cpuSeconds(program.pid)
  const { stdout } = await h2load(program, ['-n', String(requests), '-c', '4', '-m', '16'])
  const ok = checkAllOk(stdout, program.name)
  const perSecond = Number(/finished in [\d.]+m?s, ([\d.]+) req\/s/.exec(stdout)?.[1] ?? 0)
  return { perSecond, cpuMicros: ((cpuSeconds(program.pid) - before) * 1e6) / ok }
}

async function fixedRate(program: Program, dir: string): Promise<Latency> {
  const log = join(dir, `latency-${program.name}.log`)
  rmSync(log, { force: true })
  const before = cpuSeconds(program.pid)
  const rate = ['--rps', String(FIXED_RATE_EACH), '-D', String(FIXED_SECONDS), `--log-file=${log}`]
  const { stdout } = await h2load(program, ['-c', String(FIXED_CLIENTS), '-m', '4', ...rate])
  const ok = checkAllOk(stdout, program.name)
  const micros = readFileSync(log, 'utf8')
    .trim()
    .split('\n')
    .map((line) => Number(line.split('\t')[2]))
    .sort((a, b) => a - b)
  const at = (part: number): number => (micros[Math.floor(micros.length * part)] ?? 0) / 1000
  const cpuMicros = ((cpuSeconds(program.pid) - before) * 1e6) / ok
  return { perSecond: ok / FIXED_SECONDS, cpuMicros, p50: at(0.5), p99: at(0.99) }
}

/** Memory that `WATCHES` open watches cost the proxy, bytes each. */
async function idleWatches(program: Program): Promise<number> {
  const sessions: ClientHttp2Session[] = []
  const before = residentBytes(program.pid)
  let open = 0
  for (let i = 0; i < WATCHES / WATCHES_PER_CONNECTION; i++) {
    const session = connect(`https://127.0.0.1:${program.port}`, { rejectUnauthorized: false, servername: HOST })
    session.on('error', () => undefined)
    sessions.push(session)
    for (let k = 0; k < WATCHES_PER_CONNECTION; k++) {
      const headers = { ':path': '/api/v1/pods?watch=1', ':authority': HOST, authorization: `Bearer ${TOKEN}` }
      const stream = session.request(headers)
      stream.on('error', () => undefined)
      stream.once('data', () => open++)
      stream.resume()
    }
    await sleep(20)
  }
  for (let i = 0; open < WATCHES && i < 300; i++) await sleep(100)
  if (open < WATCHES) throw new Error(`${program.name}: only ${open} of ${WATCHES} watches opened`)
  await sleep(3_000)
  const bytes = (residentBytes(program.pid) - before) / WATCHES
  for (const session of sessions) session.destroy()
  return bytes
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

function row(cells: readonly (string | number)[]): void {
  process.stdout.write(`| ${cells.join(' | ')} |\n`)
}

async function requests(programs: Programs): Promise<void> {
  const direct = await programs.upstream()
  const targets = [direct, await programs.haproxy(direct.port), await programs.portcullis(direct.port)]
  for (const target of targets) await fullLoad(target, WARM_UP_REQUESTS)
  const load = new Map<string, Sample[]>()
  const fixed = new Map<string, Latency[]>()
  for (let round = 0; round < ROUNDS; round++) {
    for (const target of targets) {
      load.set(target.name, [...(load.get(target.name) ?? []), await fullLoad(target, FULL_LOAD_REQUESTS)])
    }
    for (const target of targets) {
      fixed.set(target.name, [...(fixed.get(target.name) ?? []), await fixedRate(target, programs.dir)])
    }
  }
  row([
    '',
    'requests/s',
    'CPU us/request',
    `p50 ms at ${FIXED_CLIENTS * FIXED_RATE_EACH}/s`,
    'p99 ms',
    'CPU us/request',
  ])
  row(['---', '---', '---', '---', '---', '---'])
  for (const { name } of targets) {
    const a = load.get(name) ?? []
    const b = fixed.get(name) ?? []
    row([
      name,
      median(a.map((sample) => sample.perSecond)).toFixed(0),
      median(a.map((sample) => sample.cpuMicros)).toFixed(1),
      median(b.map((sample) => sample.p50)).toFixed(2),
      median(b.map((sample) => sample.p99)).toFixed(2),
      median(b.map((sample) => sample.cpuMicros)).toFixed(1),
    ])
  }
}

async function watches(programs: Programs): Promise<void> {
  const upstream = await programs.watchUpstream()
  const results = new Map<string, number[]>()
  for (let round = 0; round < ROUNDS; round++) {
    // A fresh process each time: memory that was freed does not go back to the system.
    for (const start of [() => programs.haproxy(upstream.port), () => programs.portcullis(upstream.port)]) {
      const program = await start()
      results.set(program.name, [...(results.get(program.name) ?? []), await idleWatches(program)])
      programs.end(program)
    }
  }
  row([`${WATCHES} idle watches`, 'KiB each'])
  row(['---', '---'])
  for (const [name, bytes] of results) row([name, (median(bytes) / 1024).toFixed(1)])
}

const programs = new Programs()
try {
  process.stdout.write(`medians of ${ROUNDS}; Node ${process.version}\n\n`)
  await requests(programs)
  process.stdout.write('\n')
  await watches(programs)
} finally {
  programs.stop()
}
