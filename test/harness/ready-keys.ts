// Loaded before every test file under `test/run.ts`: RSA keys for certificates come from a file of keys that were made once for this
// checkout. A key takes OpenSSL 55 ms, and test files and the gateways inside them ask for some thousands. Each process gets each key once,
// so that no two certificates share one by mistake; when there are no more, and in all other processes, new ones are made.

import crypto from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { isMainThread } from 'node:worker_threads'

/** Names the file to test processes. */
const VARIABLE = 'TEST_KEYS'
const KEYS = 64
/** As src/pki/io/pki.ts asks for them. */
const OPTIONS = {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
} as const

interface Pair {
  readonly publicKey: string
  readonly privateKey: string
}

/** Makes the file if it is not there. @returns variables for test processes, by which they find it */
export async function readyKeys(
  file = join(import.meta.dirname, '../../node_modules/.cache/portcullis-test-keys.json'),
): Promise<Readonly<Record<string, string>>> {
  const variables = { [VARIABLE]: file }
  if (readKeys(file).length === KEYS) return variables
  const make = promisify(crypto.generateKeyPair)
  const keys = await Promise.all(Array.from({ length: KEYS }, () => make('rsa', OPTIONS)))
  mkdirSync(dirname(file), { recursive: true })
  // Another run may be reading it.
  const unfinished = `${file}.${process.pid}`
  writeFileSync(unfinished, JSON.stringify(keys), { mode: 0o600 })
  renameSync(unfinished, file)
  return variables
}

function readKeys(file: string): Pair[] {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Pair[]
  } catch {
    return []
  }
}

function handOut(file: string): void {
  let left: Pair[] | undefined
  const original = crypto.generateKeyPairSync
  const replaced = (type: string, options?: object): unknown => {
    left ??= readKeys(file)
    const isAsked = type === 'rsa' && JSON.stringify(options) === JSON.stringify(OPTIONS)
    return (isAsked ? left.shift() : undefined) ?? Reflect.apply(original, crypto, [type, options])
  }
  Reflect.set(crypto, 'generateKeyPairSync', replaced)
  // Named imports see it, too.
  syncBuiltinESMExports()
}

const given = process.env[VARIABLE]
if (given !== undefined && isMainThread) {
  // What this process starts makes its own.
  delete process.env[VARIABLE]
  handOut(given)
}
