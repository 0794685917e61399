// The gateway process is killed in the middle of writes over HTTP, ten times: what was acknowledged is there, of what was not
// either all or nothing, resourceVersions only grow, and a watch that resumes hears of everything. (The store alone:
// test/control/store-crash.test.ts.)

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Random } from '../../fuzz/random.ts'
import {
  type ControlResponse,
  cluster,
  type Json,
  type OpenWatch,
  secret,
} from '../../harness/clients/control-client.ts'
import { type EmbeddedGateway, startEmbedded, UC_PATH } from '../../harness/gateways/embedded.ts'
import { base64 } from '../../harness/objects/objects.ts'
import { waitFor } from '../../harness/wait.ts'

const ROUNDS = 10
const SEED = 20_260_101
/** Each writes one object at a time, so that it is known what may be there afterwards. */
const OBJECTS_OF_A_KIND = 5

let embedded: EmbeddedGateway

before(async () => {
  embedded = await startEmbedded({ args: ['--log-level=warn'] })
})
after(async () => {
  await embedded?.stop()
})

/** Where objects of a kind are, and how one holds a number. */
interface Kind {
  readonly path: string
  readonly create: (name: string, value: number) => Json
  readonly change: (value: number) => object
  readonly valueOf: (object: Json) => number
}

const SECRETS_KIND: Kind = {
  path: '/api/v1/namespaces/default/secrets',
  create: (name, value) => secret(name, { data: { n: base64(String(value)) } }),
  change: (value) => ({ data: { n: base64(String(value)) } }),
  valueOf: ({ data }) => Number(Buffer.from(data.n, 'base64').toString()),
}

const CLUSTERS_KIND: Kind = {
  path: UC_PATH,
  // No server listens there; statuses are written all the same.
  create: (name, value) =>
    cluster(name, { servers: [{ endpoint: 'https://127.0.0.1:1' }], degrade: { reason: String(value) } }),
  change: (value) => ({ spec: { degrade: { reason: String(value) } } }),
  valueOf: ({ spec }) => Number(spec.degrade.reason),
}

/** One object as its writer knows it; undefined = it is not there. */
class WrittenObject {
  readonly kind: Kind
  readonly name: string
  #acknowledged: number | undefined
  #pending: { readonly value: number | undefined } | undefined

  constructor(kind: Kind, name: string) {
    this.kind = kind
    this.name = name
  }

  /** Writes without pause until the process is gone. @param acknowledge called with the resourceVersion, where there is one */
  async writeOn(random: Random, next: () => number, acknowledge: (version: string) => void): Promise<void> {
    for (;;) {
      const remove = this.#acknowledged !== undefined && random.oneIn(5)
      const value = remove ? undefined : next()
      this.#pending = { value }
      let answer: ControlResponse
      try {
        answer = await this.#send(value)
      } catch {
        return
      }
      assert.ok(answer.code === 200 || answer.code === 201, `${answer.code} ${answer.text}`)
      this.#acknowledged = value
      this.#pending = undefined
      acknowledge(remove ? '' : answer.json.metadata.resourceVersion)
    }
  }

  #send(value: number | undefined): Promise<ControlResponse> {
    const { admin } = embedded
    const { path, create, change } = this.kind
    if (value === undefined) return admin.delete(`${path}/${this.name}`)
    if (this.#acknowledged === undefined) return admin.post(path, create(this.name, value))
    return admin.mergePatch(`${path}/${this.name}`, change(value))
  }

  /** @param found undefined = it is not there */
  check(found: Json): void {
    const value = found === undefined ? undefined : this.kind.valueOf(found)
    const allowed = [this.#acknowledged, ...(this.#pending === undefined ? [] : [this.#pending.value])]
    assert.ok(allowed.includes(value), `${this.name} is ${value}, may be ${allowed.join(' or ')}`)
    this.#acknowledged = value
    this.#pending = undefined
  }
}

/** What an informer would hold: fed by a watch that resumes where the last one has ended. */
class Informer {
  readonly #path: string
  readonly #objects = new Map<string, string>()
  readonly #heard = new Set<string>()
  #version: number
  #watch: OpenWatch | undefined
  #read = 0

  constructor(path: string, version: string) {
    this.#path = path
    this.#version = Number(version)
  }

  async resume(): Promise<void> {
    this.#watch?.close()
    this.#read = 0
    this.#watch = await embedded.admin.watch(`${this.#path}?watch=1&resourceVersion=${this.#version}`)
    assert.equal(this.#watch.code, 200)
  }

  /** Takes over what has come so far. */
  read(): void {
    const events = this.#watch?.events ?? []
    for (; this.#read < events.length; this.#read++) {
      const { type, object } = events[this.#read]
      assert.notEqual(type, 'ERROR', JSON.stringify(object))
      const { name, resourceVersion } = object.metadata
      assert.ok(Number(resourceVersion) > this.#version, `${resourceVersion} after ${this.#version}`)
      this.#version = Number(resourceVersion)
      this.#heard.add(resourceVersion)
      if (type === 'DELETED') this.#objects.delete(name)
      else this.#objects.set(name, resourceVersion)
    }
  }

  /** Resolves once it holds what a list says, and has heard of everything that was acknowledged. */
  async catchUp(acknowledged: ReadonlySet<string>): Promise<void> {
    await waitFor(`the watch of ${this.#path} to catch up`, async () => {
      const { items } = (await embedded.admin.get(this.#path)).json
      this.read()
      const isHeld = ({ metadata }: Json): boolean => this.#objects.get(metadata.name) === metadata.resourceVersion
      return items.length === this.#objects.size && items.every(isHeld)
    })
    const missed = [...acknowledged].filter((version) => !this.#heard.has(version))
    assert.deepEqual(missed, [], `the watch of ${this.#path} missed acknowledged writes`)
  }
}

test(`${ROUNDS} rounds of writes and kill -9`, async () => {
  let written = 0
  let versions = 0
  const kinds = await Promise.all(
    [SECRETS_KIND, CLUSTERS_KIND].map(async (kind) => ({
      kind,
      objects: Array.from({ length: OBJECTS_OF_A_KIND }, (_, i) => new WrittenObject(kind, `o${i}.example.com`)),
      informer: new Informer(kind.path, (await embedded.admin.get(kind.path)).json.metadata.resourceVersion),
      acknowledged: new Set<string>(),
    })),
  )
  for (let round = 0; round < ROUNDS; round++) {
    const random = new Random(SEED, round)
    await Promise.all(kinds.map(({ informer }) => informer.resume()))
    const most = 1 + random.below(150)
    let left = most
    const { gateway } = embedded
    const writers = kinds.flatMap(({ objects, acknowledged }, k) =>
      objects.map((object, i) =>
        object.writeOn(
          new Random(SEED, (round + 1) * 1_000 + k * 100 + i),
          () => ++written,
          (version) => {
            if (version !== '') acknowledged.add(version)
            versions = Math.max(versions, Number(version))
            left--
            // Others are on their way at this moment.
            if (left === 0) gateway.signal('SIGKILL')
          },
        ),
      ),
    )
    assert.equal(await gateway.exited, 'SIGKILL')
    await Promise.all(writers)
    for (const { informer } of kinds) informer.read()
    await embedded.restart('SIGKILL')
    for (const { kind, objects, informer, acknowledged } of kinds) {
      const { items, metadata } = (await embedded.admin.get(kind.path)).json
      assert.ok(Number(metadata.resourceVersion) >= versions, `${metadata.resourceVersion} after ${versions}`)
      for (const object of objects) object.check(items.find((item: Json) => item.metadata.name === object.name))
      await informer.resume()
      await informer.catchUp(acknowledged)
    }
  }
  assert.ok(written > ROUNDS)
})
