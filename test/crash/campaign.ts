// Rounds of: a writer is started and killed, the log is torn as a power cut would, the store is opened and compared.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { openSqliteStore, type SqliteStore } from '../../src/apiserver/io/store/store.ts'
import { Random } from '../fuzz/random.ts'
import { endWithThisProcess } from '../harness/process.ts'
import { ExpectedStore } from './expected-store.ts'
import { parseJournal, RESOURCES, type WriterOrder } from './journal.ts'
import { spin } from './spin.ts'
import { endWithout, readWal, tear, tearCheckpoint } from './wal-file.ts'

/** A store lives so many rounds: long enough to be compacted, and new ones are killed, too. */
const ROUNDS_OF_A_STORE = 20
const HISTORY_REVISIONS = 2_000
/** A watcher that resumes may be behind so far; the rest of the history is for what is written meanwhile. */
const HISTORY_CHECKED = 1_000
const KEY = Buffer.alloc(32, 42)

export interface CampaignOptions {
  readonly rounds: number
  readonly seed: number
  /** Also tears what was acknowledged: the campaign must notice. Default false. */
  readonly tearAcknowledged?: boolean
  readonly onRound?: (description: string) => void
}

export interface CampaignResult {
  /** Acknowledged by all writers. */
  readonly revisions: number
  /** Rounds with a torn log, or checkpoint. */
  readonly torn: number
  /** Rounds after which the log held a whole transaction that no writer had been told of. */
  readonly unacknowledged: number
}

/** Rejects with the seed and the round of what is wrong. */
export async function crashCampaign(options: CampaignOptions): Promise<CampaignResult> {
  let revisions = 0
  let torn = 0
  let unacknowledged = 0
  let place = mkdtempSync(join(tmpdir(), 'portcullis-crash-'))
  let expected = new ExpectedStore()
  try {
    for (let round = 0; round < options.rounds; round++) {
      if (round % ROUNDS_OF_A_STORE === 0 && round > 0) {
        revisions += expected.revision
        rmSync(place, { recursive: true })
        place = mkdtempSync(join(tmpdir(), 'portcullis-crash-'))
        expected = new ExpectedStore()
      }
      const crash = new CrashRound(place, expected, options, round)
      try {
        await crash.run()
      } catch (error) {
        throw new Error(`seed ${options.seed}, round ${round} (${crash.description})`, { cause: error })
      }
      if (crash.torn) torn += 1
      if (crash.unacknowledged) unacknowledged += 1
      options.onRound?.(`round ${round}: ${crash.description}`)
    }
    return { revisions: revisions + expected.revision, torn, unacknowledged }
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

class CrashRound {
  readonly #dir: string
  readonly #file: string
  readonly #expected: ExpectedStore
  readonly #options: CampaignOptions
  readonly #round: number
  readonly #random: Random
  description = ''
  torn = false
  unacknowledged = false

  constructor(place: string, expected: ExpectedStore, options: CampaignOptions, round: number) {
    this.#dir = join(place, 'store')
    this.#file = join(this.#dir, 'store.db')
    this.#expected = expected
    this.#options = options
    this.#round = round
    this.#random = new Random(options.seed, round)
  }

  async run(): Promise<void> {
    // What is not watched now gets more events when it resumes.
    const watched = RESOURCES.filter((resource) => this.#random.oneIn(2) || this.#isFarBehind(resource))
    const text = await this.#writeUntilKilled(watched)
    const before = this.#expected.revision
    this.#expected.take(parseJournal(text), watched)
    this.description = `${this.#expected.revision - before} revisions, now ${this.#expected.revision}`
    if (!existsSync(this.#file)) return
    if (this.#options.tearAcknowledged === true || !this.#random.oneIn(3)) this.#tear()
    this.#check()
  }

  async #writeUntilKilled(watched: readonly string[]): Promise<string> {
    const order: WriterOrder = {
      file: this.#file,
      key: KEY.toString('hex'),
      seed: this.#options.seed,
      round: this.#round,
      historyRevisions: HISTORY_REVISIONS,
      watch: Object.fromEntries(watched.map((resource) => [resource, this.#expected.heard(resource)])),
    }
    const child = spawn(process.execPath, [join(import.meta.dirname, 'writer.ts'), JSON.stringify(order)])
    endWithThisProcess(child)
    const kill = (): void => {
      spin(this.#random.below(3_000))
      child.kill('SIGKILL')
    }
    // Now and then while it makes or opens the store; else after so many lines.
    const early = this.#random.oneIn(8)
    const lines = early ? Number.POSITIVE_INFINITY : 1 + this.#random.below(500)
    // A new store as soon as its file is there, an old one at some time.
    const isNew = !existsSync(this.#file)
    const startMs = performance.now() + 50 + this.#random.below(400)
    const begun = (): boolean => (isNew ? existsSync(this.#file) : performance.now() > startMs)
    const starting = early ? setInterval(() => begun() && kill(), 1) : undefined
    const said: Buffer[] = []
    let seen = 0
    let complaints = ''
    child.stderr.on('data', (chunk: Buffer) => (complaints += chunk.toString()))
    child.stdout.on('data', (chunk: Buffer) => {
      said.push(chunk)
      const had = seen
      for (const byte of chunk) if (byte === 0x0a) seen += 1
      if (had < lines && seen >= lines) kill()
    })
    const signal = await new Promise((resolve) => child.once('close', (_code, name) => resolve(name)))
    clearInterval(starting)
    assert.equal(signal, 'SIGKILL', `the writer ended by itself: ${complaints}`)
    return Buffer.concat(said).toString('utf8')
  }

  #isFarBehind(resource: string): boolean {
    return this.#expected.heard(resource) < this.#expected.revision - HISTORY_CHECKED / 2
  }

  #tear(): void {
    const walFile = `${this.#file}-wal`
    const wal = readWal(walFile)
    // One transaction at most can be in the log without having been acknowledged: only it may be torn.
    this.unacknowledged = this.#copied((store) => store.revision) > this.#expected.revision
    const more = this.#options.tearAcknowledged === true ? 1 : 0
    const start = endWithout(wal, (this.unacknowledged ? 1 : 0) + more)
    const notes: string[] = []
    if (wal.frames.length > 0 && this.#random.oneIn(2)) notes.push(tearCheckpoint(this.#file, wal, start, this.#random))
    if (existsSync(walFile)) notes.push(tear(walFile, wal, start, this.#random))
    const index = `${this.#file}-shm`
    // The index of the log is not kept on disk: anything may be in it.
    if (existsSync(index) && this.#random.oneIn(3)) {
      writeFileSync(index, Buffer.alloc(statSync(index).size, this.#random.below(256)))
    }
    this.torn = notes.length > 0
    if (this.unacknowledged) this.description += ', one not acknowledged'
    if (this.torn) this.description += `, torn: ${notes.join(', ')}`
  }

  #check(): void {
    const check = (store: SqliteStore): void => {
      this.#expected.check(store)
      const { revision } = this.#expected
      this.#expected.checkHistory(store, Math.max(1, revision - this.#random.below(HISTORY_CHECKED)))
    }
    // A copy: then the next writer finds the log as it was left, and mends it itself.
    if (this.#random.oneIn(2)) this.#copied(check)
    else withStore(this.#dir, check)
  }

  #copied<T>(action: (store: SqliteStore) => T): T {
    const copy = `${this.#dir}-copy`
    rmSync(copy, { recursive: true, force: true })
    mkdirSync(copy)
    cpSync(this.#dir, copy, { recursive: true })
    return withStore(copy, action)
  }
}

function withStore<T>(dir: string, action: (store: SqliteStore) => T): T {
  const file = join(dir, 'store.db')
  const store = openSqliteStore({ file, key: KEY, historyRevisions: HISTORY_REVISIONS, historyMs: 0 })
  let result: T
  try {
    result = action(store)
  } finally {
    store.close()
  }
  const db = new DatabaseSync(file)
  try {
    const found = db
      .prepare('PRAGMA integrity_check')
      .all()
      .map((row) => Object.values(row)[0])
    assert.deepEqual(found, ['ok'])
    const left = db
      .prepare(
        'SELECT count(*) AS n FROM bodies WHERE revision NOT IN (SELECT revision FROM objects UNION SELECT previous FROM events UNION SELECT revision FROM events)',
      )
      .get()
    assert.equal(left?.['n'], 0, 'bodies without an object')
  } finally {
    db.close()
  }
  return result
}
