// Other people's clients that post a body, and what each of them says of an answer that comes before the body's end. Each is a program.

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import type { KeyPair } from '../../../src/pki/io/pki.ts'
import { binaries } from '../binaries.ts'
import { endWithThisProcess, guarded } from '../process.ts'
import { type Python, plainPython, pythonWith } from '../python/python.ts'

export interface UploadTarget {
  /** On 127.0.0.1. */
  readonly port: number
  /** SNI and :authority. */
  readonly host: string
  readonly path: string
}

/** A client that waits longer has not understood the answer. */
const TIMEOUT_S = 20
/** Until then it has to say so itself. */
const SILENCE_MS = (TIMEOUT_S + 10) * 1000

interface Files {
  readonly cert: string
  readonly key: string
  readonly body: string
  readonly bytes: number
}

/** A command line that prints a line for each of its requests, of which curl makes only one. */
interface Client {
  readonly program: () => Promise<Python>
  readonly args: (target: UploadTarget, files: Files, runs: number) => readonly string[]
}

const withHttpx = (): Promise<Python> => pythonWith('httpx')
const NODE_CLIENT = join(import.meta.dirname, 'node-client.ts')
const PYTHON_CLIENT = join(import.meta.dirname, 'client.py')

function node(client: string): Client {
  return {
    program: () => Promise.resolve({ program: process.execPath }),
    args: ({ port, host, path }, { cert, key, bytes }, runs) => [
      NODE_CLIENT,
      ...[client, String(port), host, path, cert, key, String(bytes), String(runs), String(TIMEOUT_S * 1000)],
    ],
  }
}

function python(client: string, program: () => Promise<Python>): Client {
  return {
    program,
    args: ({ port, host, path }, { cert, key, bytes }, runs) => [
      PYTHON_CLIENT,
      ...[client, String(port), host, path, cert, key, String(bytes), String(runs), String(TIMEOUT_S)],
    ],
  }
}

function curl(version: string): Client {
  return {
    program: () => Promise.resolve({ program: 'curl' }),
    args: ({ port, host, path }, { cert, key, body }) => [
      ...['-sSk', version, '--max-time', String(TIMEOUT_S), '--resolve', `${host}:${port}:127.0.0.1`],
      ...['--cert', cert, '--key', key, '--data-binary', `@${body}`, '-o', '/dev/null', '-w', '%{http_code}\n'],
      `https://${host}:${port}${path}`,
    ],
  }
}

function go(http2: boolean): Client {
  return {
    program: async () => ({ program: (await binaries()).uploads }),
    args: ({ port, host, path }, { cert, key, bytes }, runs) => [
      ...[`-address=127.0.0.1:${port}`, `-host=${host}`, `-path=${path}`, `-cert=${cert}`, `-key=${key}`],
      ...[`-bytes=${bytes}`, `-http2=${http2}`, `-runs=${runs}`, `-timeout=${TIMEOUT_S}s`],
    ],
  }
}

const CLIENTS: Readonly<Record<string, Client>> = {
  'curl --http2': curl('--http2'),
  'curl --http1.1': curl('--http1.1'),
  'Node http2': node('http2'),
  'Node https': node('https'),
  'undici fetch, HTTP/2': node('fetch-h2'),
  'undici fetch, HTTP/1.1': node('fetch'),
  'Python httpx, HTTP/2': python('httpx-h2', withHttpx),
  'Python httpx, HTTP/1.1': python('httpx', withHttpx),
  'Python urllib': python('urllib', plainPython),
  'Go net/http, HTTP/2': go(true),
  'Go net/http, HTTP/1.1': go(false),
}

export const UPLOAD_CLIENTS: readonly string[] = Object.keys(CLIENTS)

export class Uploads {
  readonly #folder = mkdtempSync(join(tmpdir(), 'uploads-'))
  readonly #files: Files

  /** @param bytes of each body */
  constructor(certificate: KeyPair, bytes: number) {
    const file = (name: string, content: string | Buffer): string => {
      const path = join(this.#folder, name)
      writeFileSync(path, content)
      return path
    }
    this.#files = {
      cert: file('client.crt', certificate.certPem),
      key: file('client.key', certificate.keyPem),
      body: file('body', Buffer.alloc(bytes)),
      bytes,
    }
  }

  /** Why this client cannot run here; undefined = it can. */
  async missing(name: string): Promise<string | undefined> {
    const found = await clientOf(name).program()
    return 'missing' in found ? found.missing : undefined
  }

  /** What the client says of each of `runs` requests, one after the other: the status, or what went wrong. */
  async *post(name: string, target: UploadTarget, runs: number): AsyncGenerator<string> {
    const client = clientOf(name)
    const found = await client.program()
    if ('missing' in found) throw new Error(found.missing)
    for (let left = runs; left > 0; ) {
      const args = client.args(target, this.#files, left)
      for await (const said of linesOf(found.program, args)) {
        left--
        yield said
      }
    }
  }

  end(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

function clientOf(name: string): Client {
  const client = CLIENTS[name]
  if (client === undefined) throw new Error(`no client ${name}; there are ${UPLOAD_CLIENTS.join(', ')}`)
  return client
}

/** What a program prints, and what it says on stderr if it fails. Ends it. */
async function* linesOf(program: string, args: readonly string[]): AsyncGenerator<string> {
  const [command, commandArgs] = guarded(program, args)
  const child = spawn(command, commandArgs, { stdio: ['ignore', 'pipe', 'pipe'] })
  endWithThisProcess(child)
  let problem = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    problem = (problem + text).slice(-2000)
  })
  child.on('error', (error) => {
    problem += error.message
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const silence = new Silence(child)
  // One line late: what a client says while it fails belongs to its last request (curl prints the status, too).
  let last: string | undefined
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      silence.broken()
      if (last !== undefined) yield last
      last = line
    }
    const code = await ended
    if (silence.wasLong) problem = `waits for ever: no word in ${SILENCE_MS} ms; ${problem}`
    else if (code === 0 && last !== undefined) problem = ''
    else problem ||= `${program} ended with ${code}`
    yield [last ?? '', problem.trim()].join(' ').trim()
  } finally {
    silence.end()
    child.kill('SIGKILL')
    await ended
  }
}

/** Ends a program that says nothing for too long. */
class Silence {
  readonly #timer: NodeJS.Timeout
  wasLong = false

  constructor(child: ChildProcess) {
    this.#timer = setTimeout(() => {
      this.wasLong = true
      child.kill('SIGKILL')
    }, SILENCE_MS)
  }

  broken(): void {
    this.#timer.refresh()
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}
