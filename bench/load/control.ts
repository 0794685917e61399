// The embedded API server of a gateway: UpstreamClusters are created and changed there as an administrator does it, over HTTP.

import { readFileSync } from 'node:fs'
import type { ClientHttp2Session } from 'node:http2'
import { join } from 'node:path'
import { parse } from 'yaml'
import { h2Connect, h2Request } from '../../test/harness/clients/h2-client.ts'

const PATH = '/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters'

export interface Controlled {
  readonly control: number
  readonly dataDir: string
}

/** A connection as the administrator whose kubeconfig the gateway writes. The caller closes it. */
export function connectControl({ control, dataDir }: Controlled): ClientHttp2Session {
  const { users } = parse(readFileSync(join(dataDir, 'control/pki/admin.kubeconfig'), 'utf8'))
  const pem = (key: string): string => Buffer.from(users[0].user[key], 'base64').toString()
  const certificate = { certPem: pem('client-certificate-data'), keyPem: pem('client-key-data') }
  return h2Connect({ port: control, serverName: 'localhost', certificate })
}

/** One after the other. */
export async function createObjects(session: ClientHttp2Session, objects: readonly object[]): Promise<void> {
  for (const object of objects) await write(session, 'POST', PATH, 'application/json', object)
}

/** Resolves with the answer to the write. */
export function patchObject(session: ClientHttp2Session, name: string, patch: object): Promise<void> {
  return write(session, 'PATCH', `${PATH}/${name}`, 'application/merge-patch+json', patch)
}

async function write(
  session: ClientHttp2Session,
  method: string,
  path: string,
  type: string,
  body: object,
): Promise<void> {
  const head = [':method', method, ':path', path, 'content-type', type]
  const answer = await h2Request(session, head, Buffer.from(JSON.stringify(body)))
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body.toString()}`)
}
