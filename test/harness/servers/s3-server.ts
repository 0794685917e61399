// versitygw: an S3 server whose buckets are folders. It verifies signatures, checksums and clocks as AWS does.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rareBinary } from '../binaries.ts'
import { withFreePorts } from '../ports.ts'
import { startProcess } from '../process.ts'

export const S3_KEY_ID = 'AKIAPORTCULLISTEST'
export const S3_SECRET = 'planted/secret+of=tests'
/** In the form of AWS's shared credentials file. */
export const S3_CREDENTIALS: string = `[default]\naws_access_key_id = ${S3_KEY_ID}\naws_secret_access_key = ${S3_SECRET}\n`

export interface S3Server {
  readonly url: string
  makeBucket(name: string): void
  /** Names of its objects. */
  objects(bucket: string): readonly string[]
  object(bucket: string, name: string): Buffer
  stop(): Promise<void>
}

/** @param tls with this certificate */
export async function startS3Server(tls?: { readonly cert: string; readonly key: string }): Promise<S3Server> {
  const command = await rareBinary('versitygw')
  const dir = mkdtempSync(join(tmpdir(), 's3-'))
  const [root, metadata] = [join(dir, 'buckets'), join(dir, 'metadata')]
  for (const folder of [root, metadata]) mkdirSync(folder)
  const tlsArgs = tls === undefined ? [] : ['--cert', join(dir, 'tls.crt'), '--key', join(dir, 'tls.key')]
  if (tls !== undefined) {
    writeFileSync(join(dir, 'tls.crt'), tls.cert)
    writeFileSync(join(dir, 'tls.key'), tls.key)
  }
  return await withFreePorts(1, async ([port = 0]) => {
    const server = await startProcess({
      name: 'versitygw',
      command,
      args: ['--port', `127.0.0.1:${port}`, '--quiet', ...tlsArgs, 'posix', '--sidecar', metadata, root],
      env: { ROOT_ACCESS_KEY: S3_KEY_ID, ROOT_SECRET_KEY: S3_SECRET, VGW_REGION: 'eu-test-1' },
      logFile: join(dir, 'log'),
      ready: () => isListening(port),
    })
    return {
      url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
      makeBucket: (name) => mkdirSync(join(root, name)),
      objects: (bucket) => (existsSync(join(root, bucket)) ? filesBelow(join(root, bucket)) : []),
      object: (bucket, name) => readFileSync(join(root, bucket, name)),
      async stop() {
        await server.stop()
        rmSync(dir, { recursive: true })
      },
    }
  })
}

/** What the server keeps for itself begins with a dot. */
function filesBelow(dir: string): readonly string[] {
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
  const paths = files.map(({ parentPath, name }) => join(parentPath, name).slice(dir.length + 1))
  return paths.filter((path) => !path.startsWith('.')).sort((a, b) => (a < b ? -1 : 1))
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(socket.destroy().destroyed)).once('error', () => resolve(false))
  })
}
