// Posts bodies as Node's clients do, each on a connection of its own, and prints a line for each: the status, or the error. A program of its
// own, so that it has its own event loop.

import { readFileSync } from 'node:fs'
import { connect } from 'node:http2'
import { request } from 'node:https'
import type { LookupFunction } from 'node:net'
import process from 'node:process'
import { Agent, fetch } from 'undici'

const [client = '', port = '', host = '', path = '', cert = '', key = '', size = '', runs = '', timeoutMs = ''] =
  process.argv.slice(2)
const tls = { servername: host, rejectUnauthorized: false, cert: readFileSync(cert), key: readFileSync(key) }
const origin = `https://127.0.0.1:${port}`
const body = Buffer.alloc(Number(size))

/** What a client has got so far, for the message of one that waits for ever. */
let seen = 'no answer'

function overHttp2(): Promise<number> {
  return new Promise((resolve, reject) => {
    const session = connect(origin, tls)
    session.on('error', reject)
    const stream = session.request({ ':method': 'POST', ':path': path, ':authority': host, 'content-length': size })
    let status = 0
    stream.on('response', (head) => {
      status = Number(head[':status'])
      seen = `answer ${status}`
    })
    stream.on('end', () => {
      seen = `answer ${status}, complete`
    })
    stream.on('error', reject)
    // Only then the client is done with the stream.
    stream.on('close', () => {
      resolve(status)
      session.destroy()
    })
    stream.resume()
    stream.end(body)
  })
}

function overHttps(): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { host, 'content-length': size }
    const sent = request(`${origin}${path}`, { ...tls, method: 'POST', agent: false, headers }, (response) => {
      seen = `answer ${response.statusCode}`
      response.on('error', reject)
      response.on('end', () => resolve(response.statusCode ?? 0))
      response.resume()
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

async function byFetch(allowH2: boolean): Promise<number> {
  // fetch() takes no other host than that of the URL.
  const lookup: LookupFunction = (_name, _options, found) => found(null, [{ address: '127.0.0.1', family: 4 }])
  const dispatcher = new Agent({ connect: { ...tls, lookup }, allowH2 })
  try {
    const response = await fetch(`https://${host}:${port}${path}`, { method: 'POST', body, dispatcher })
    seen = `answer ${response.status}`
    await response.text()
    return response.status
  } finally {
    dispatcher.destroy().catch(() => undefined)
  }
}

const CLIENTS: Readonly<Record<string, () => Promise<number>>> = {
  http2: overHttp2,
  https: overHttps,
  fetch: () => byFetch(false),
  'fetch-h2': () => byFetch(true),
}

async function run(): Promise<string> {
  seen = 'no answer'
  const answered = CLIENTS[client]?.() ?? Promise.reject(new Error(`no client ${client}`))
  const late = Promise.withResolvers<string>()
  const timer = setTimeout(() => late.resolve(`waits for ever: ${seen} after ${timeoutMs} ms`), Number(timeoutMs))
  try {
    return String(await Promise.race([answered, late.promise]))
  } catch (error) {
    return text(error)
  } finally {
    clearTimeout(timer)
  }
}

function text(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error ? ` (${String(error.code)})` : ''
  return `${error}${code}${error.cause === undefined ? '' : `, because of ${text(error.cause)}`}`
}

for (let i = 0; i < Number(runs); i++) process.stdout.write(`${(await run()).replaceAll('\n', ' ')}\n`)
// What is left of those that wait for ever must not keep it.
process.exit()
