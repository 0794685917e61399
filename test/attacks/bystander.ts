// Another user beside an attack: reads on connections that are open, one watch, and now and then a new connection, and a token that has
// not been seen before.

import assert from 'node:assert/strict'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { h2Connect, h2Open, h2Request } from '../harness/clients/h2-client.ts'
import { HOST, type Scene } from './scene.ts'
import { SMALL_PATH } from './wire/http2.ts'

const CONNECTIONS = 4

export class Bystander {
  readonly #scene: Scene
  readonly #sessions: readonly ClientHttp2Session[]
  readonly #watch: ClientHttp2Stream
  #watchEnded = false
  #tokens = 0

  /** Resolves when its watch has begun. */
  static async start(scene: Scene): Promise<Bystander> {
    const bystander = new Bystander(scene)
    await new Promise((resolve) => bystander.#watch.once('data', resolve))
    return bystander
  }

  private constructor(scene: Scene) {
    this.#scene = scene
    this.#sessions = Array.from({ length: CONNECTIONS }, () => this.#connect(true))
    this.#watch = h2Open(this.#session(0), [':path', '/api/v1/pods?watch=true'])
    this.#watch.on('close', () => {
      this.#watchEnded = true
    })
  }

  /** So many reads, one after the other, then one of a new connection, one of a new token. Throws when one of them fails. */
  async ask(reads: number): Promise<void> {
    for (let n = 0; n < reads; n++) await served(this.#session(n), 'a read')
    const fresh = this.#connect(true)
    const stranger = this.#connect(false)
    try {
      await served(fresh, 'a read on a new connection')
      await served(stranger, 'a read with a new token', 'authorization', `Bearer bystander.${this.#tokens++}.token`)
    } finally {
      fresh.destroy()
      stranger.destroy()
    }
    assert.equal(this.#watchEnded, false, 'the watch goes on')
  }

  /** Connections that it keeps. */
  get connections(): number {
    return CONNECTIONS
  }

  end(): void {
    for (const session of this.#sessions) session.destroy()
  }

  #session(n: number): ClientHttp2Session {
    const session = this.#sessions[n % CONNECTIONS]
    assert.ok(session)
    return session
  }

  #connect(withCertificate: boolean): ClientHttp2Session {
    const { port } = this.#scene.embedded.gateway
    const certificate = withCertificate ? { certificate: this.#scene.bystander } : {}
    return h2Connect({ port, serverName: HOST, ...certificate })
  }
}

async function served(session: ClientHttp2Session, what: string, ...fields: readonly string[]): Promise<void> {
  const { status, resetCode, body } = await h2Request(session, [':path', SMALL_PATH, ':authority', HOST, ...fields])
  assert.deepEqual({ status, resetCode }, { status: 200, resetCode: 0 }, `${what}: ${body.toString().slice(0, 300)}`)
}
