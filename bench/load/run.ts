// HAProxy and Portcullis side by side, a median of some rounds; every goal of bench/budget.json with its result.
// `npm run bench -- --only cpu,latency --rounds 1` for a quick look, `--profile` for where the time goes.

import { join, resolve } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { Bench } from './bench.ts'
import { inPriority } from './priority.ts'
import { stopAll } from './processes.ts'
import { profile } from './profile.ts'
import { Report } from './report.ts'
import { against } from './rows/against.ts'
import { broadcast } from './rows/broadcast.ts'
import { churn } from './rows/churn.ts'
import { cold } from './rows/cold.ts'
import { clusters, policies } from './rows/configuration.ts'
import { cpu } from './rows/cpu.ts'
import { exec } from './rows/exec.ts'
import { fleet } from './rows/fleet.ts'
import { handshakes } from './rows/handshakes.ts'
import { type HostileOptions, hostile } from './rows/hostile.ts'
import { http1 } from './rows/http1.ts'
import { idle } from './rows/idle.ts'
import { insight } from './rows/insight.ts'
import { latency } from './rows/latency.ts'
import { list } from './rows/list.ts'
import { logs } from './rows/logs.ts'
import { mixed } from './rows/mixed.ts'
import { pauses } from './rows/pauses.ts'
import { start } from './rows/start.ts'
import { starts } from './rows/starts.ts'
import { store } from './rows/store.ts'
import { storm } from './rows/storm.ts'
import { threads } from './rows/threads.ts'
import { tokens } from './rows/tokens.ts'
import { top, topUsers } from './rows/top.ts'
import { upload } from './rows/upload.ts'
import { watches } from './rows/watches.ts'
import { commitOf, versions } from './versions.ts'

/** In the order in which they run. */
const ROWS: Readonly<Record<string, (bench: Bench) => Promise<void>>> = {
  cpu,
  starts,
  tokens,
  logs,
  top,
  'top-users': topUsers,
  insight,
  latency,
  http1,
  cold,
  pauses: (bench) => pauses(bench, 60 * Number(values.minutes)),
  threads,
  watches,
  idle,
  broadcast,
  list,
  upload,
  exec,
  mixed,
  fleet,
  policies,
  clusters,
  store,
  churn: (bench) => churn(bench, 60 * Number(values.minutes)),
  handshakes,
  storm,
  hostile: (bench) => hostile(bench, hostileOptions()),
  start,
}

/** They take minutes to hours, or need thousands of files and connections: only when named. */
const ON_REQUEST: readonly string[] = ['top-users', 'idle', 'store', 'churn', 'storm', 'hostile']

const ALL = 'all'
const RESULTS = join(import.meta.dirname, '../results/load.json')

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    rounds: { type: 'string', default: '2' },
    json: { type: 'string', default: RESULTS },
    profile: { type: 'boolean', default: false },
    http1: { type: 'boolean', default: false },
    'http1-upstream': { type: 'boolean', default: false },
    rate: { type: 'string' },
    root: { type: 'string', default: join(import.meta.dirname, '../..') },
    tolerate: { type: 'string', default: '0' },
    threads: { type: 'string' },
    token: { type: 'boolean', default: false },
    top: { type: 'string', default: '45' },
    attacks: { type: 'string' },
    seconds: { type: 'string', default: '10' },
    minutes: { type: 'string', default: '1' },
    against: { type: 'string' },
  },
})

const rows =
  values.only === ALL
    ? Object.keys(ROWS)
    : (values.only?.split(',') ?? Object.keys(ROWS).filter((name) => !ON_REQUEST.includes(name)))
const unknown = rows.find((name) => ROWS[name] === undefined)
if (unknown !== undefined) throw new Error(`no row ${unknown}; there are ${ALL}, ${Object.keys(ROWS).join(', ')}`)
if (inPriority()) await run()

function hostileOptions(): HostileOptions {
  const { attacks, threads } = values
  return {
    attacks: attacks?.split(','),
    seconds: Number(values.seconds),
    attempts: Number(values.rounds),
    threads: threads === undefined ? [1, 2] : threads.split(',').map(Number),
  }
}

async function run(): Promise<void> {
  const report = new Report()
  const bench = new Bench(Number(values.rounds), report, resolve(values.root), Number(values.tolerate))
  process.on('exit', () => {
    void stopAll()
    bench.material.remove()
  })
  process.on('SIGINT', () => process.exit(130))
  process.on('SIGTERM', () => process.exit(143))
  process.on('SIGHUP', () => process.exit(129))

  try {
    if (values.profile) {
      const identity = values.token ? 'token' : 'x509'
      await profile(bench, {
        threads: Number(values.threads ?? 1),
        identity,
        load: { http1: values.http1, ...(values.rate !== undefined && { rate: Number(values.rate) }) },
        olderUpstream: values['http1-upstream'],
        top: Number(values.top),
      })
    } else if (values.against !== undefined) {
      const { toOther } = await against(bench, resolve(values.against))
      process.stdout.write(`\n${toOther.toFixed(3)} x the other checkout\n`)
    } else {
      const programs = versions()
      const commit = commitOf(bench.root)
      process.stdout.write(`${commit}, medians of ${bench.rounds}; ${programs}\n`)
      const took: Record<string, number> = {}
      for (const name of rows) {
        const sinceMs = performance.now()
        await ROWS[name]?.(bench)
        await stopAll()
        took[name] = Math.round((performance.now() - sinceMs) / 1000)
        process.stdout.write(`\n(${name}: ${took[name]} s)\n`)
      }
      report.finish(rows, resolve(values.json), {
        commit,
        rounds: bench.rounds,
        programs,
        seconds: took,
        at: new Date().toISOString(),
      })
    }
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
    process.exit(1)
  }
  process.exit(0)
}
