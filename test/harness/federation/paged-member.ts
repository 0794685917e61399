// A member of a federated cluster that is a stub and lists its pods as kube-apiserver does: in pages, each list of one version, and at earlier versions. It is quiet:
// its watches bring changes, if they are not held back, and never a bookmark.

import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { UpstreamCluster } from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import type { KeyPair } from '../../../src/pki/io/pki.ts'
import { ALLOW_ALL, clusterObject } from '../objects/objects.ts'
import { reply, replyReview, type SeenRequest, type StubUpstream, startStub } from '../upstreams/stub-upstream.ts'

interface StubPod {
  readonly name: string
  readonly note: string
  readonly version: number
}

/** A list that a user has asked for, as the gateway sent it. */
interface SeenList {
  readonly user: string
  readonly accept: string
  readonly query: URLSearchParams
}

/** What a list says. */
export interface SentList {
  metadata: { resourceVersion: string; continue?: string }
  items: unknown[]
}

export class PagedMember {
  /** Lists of users, not those of the read cache. */
  readonly lists: SeenList[] = []
  /** Lists of all, without a limit, by which the read cache proves that it is current. */
  wholes = 0
  /** Changes are told so much later. */
  delayMs = 0
  /** Lists of users are not answered. */
  isSilent = false
  /** What lists of users say instead. */
  change: (list: SentList) => void = () => undefined
  readonly #stub: StubUpstream
  readonly #watches = new Set<Http2ServerResponse>()
  /** By version. */
  readonly #states = new Map<number, readonly StubPod[]>()
  #version = 100
  #isHeldBack = false
  #held: (() => void)[] | undefined
  /** Events. */
  readonly #untold: string[] = []

  private constructor(stub: StubUpstream) {
    this.#stub = stub
    this.#states.set(this.#version, [])
  }

  static async start(): Promise<PagedMember> {
    const stub = await startStub(0, {}, '127.0.0.1', (request, response) => {
      member.#answerCache(request, response)
    })
    const member: PagedMember = new PagedMember(stub)
    stub.answer = (request) => member.#answerUser(request)
    stub.answerAccess = (seen) => replyReview(seen, { allowed: true })
    return member
  }

  get stub(): StubUpstream {
    return this.#stub
  }

  get version(): string {
    return String(this.#version)
  }

  /** Its pods at a version, with their own versions. */
  podsAt(version: string): readonly string[] {
    return (this.#states.get(Number(version)) ?? []).map((pod) => `${pod.name} ${pod.version}`)
  }

  /** The list of a server that knows of no pages. */
  listAll(): SentList {
    return this.#list(new URLSearchParams(), 'default')
  }

  /** Something else than a pod is written. */
  pass(): void {
    this.#next(this.#pods())
  }

  write(name: string, note = ''): void {
    const others = this.#pods().filter((pod) => pod.name !== name)
    const pod = { name, note, version: this.#version + 1 }
    const type = others.length === this.#pods().length ? 'ADDED' : 'MODIFIED'
    this.#next([...others, pod].sort((a, b) => (a.name < b.name ? -1 : 1)))
    this.#tell(type, pod)
  }

  remove(name: string): void {
    const pod = this.#pods().find((one) => one.name === name)
    if (pod === undefined) throw new Error(`no pod ${name}`)
    this.#next(this.#pods().filter((one) => one !== pod))
    this.#tell('DELETED', { ...pod, version: this.#version })
  }

  /** Lists of all are answered when they are sent: until then nothing is proved. */
  holdProofs(): void {
    this.#held ??= []
  }

  sendProofs(): void {
    for (const send of this.#held ?? []) send()
    this.#held = undefined
  }

  /** Changes are told when they are released. */
  holdBack(): void {
    this.#isHeldBack = true
  }

  release(): void {
    this.#isHeldBack = false
    for (const event of this.#untold.splice(0)) for (const watch of this.#watches) watch.write(event)
  }

  async stop(): Promise<void> {
    await this.#stub.stop()
  }

  #pods(): readonly StubPod[] {
    return this.#states.get(this.#version) ?? []
  }

  #next(pods: readonly StubPod[]): void {
    this.#states.set(++this.#version, pods)
  }

  #tell(type: string, pod: StubPod): void {
    const object = { kind: 'Pod', apiVersion: 'v1', ...shown(pod) }
    this.#untold.push(`${JSON.stringify({ type, object })}\n`)
    if (this.#isHeldBack) return
    if (this.delayMs === 0) this.release()
    else setTimeout(() => this.release(), this.delayMs)
  }

  /** The read cache, from the main thread. */
  #answerCache({ url }: Http2ServerRequest, response: Http2ServerResponse): void {
    response.setHeader('content-type', 'application/json')
    const { pathname, searchParams: query } = new URL(url, 'https://stub')
    if (pathname !== '/api/v1/pods') {
      response.writeHead(404).end('{}')
    } else if (query.has('watch')) {
      this.#watches.add(response)
      response.on('close', () => this.#watches.delete(response))
      response.writeHead(200).write('')
    } else {
      if (query.has('limit')) {
        response.writeHead(200).end(textOf(this.#list(query, 'default')))
        return
      }
      this.wholes++
      const send = (): void => void response.writeHead(200).end(textOf(this.#list(query, 'default')))
      if (this.#held === undefined) send()
      else this.#held.push(send)
    }
  }

  /** What is asked for users, from gateway threads. */
  #answerUser(request: SeenRequest): void {
    const { pathname, searchParams: query } = new URL(request.path, 'https://stub')
    const [user = ''] = request.values('impersonate-user')
    const [accept = ''] = request.values('accept')
    this.lists.push({ user, accept, query })
    if (this.isSilent) return
    const list = this.#list(query, pathname === '/api/v1/pods' ? 'default' : (pathname.split('/')[4] ?? ''))
    this.change(list)
    reply(request, 200, textOf(list))
  }

  #list(query: URLSearchParams, namespace: string): SentList {
    const [at = '', start = ''] = (query.get('continue') ?? '').split(' ')
    const version = Number(at || (query.get('resourceVersion') ?? '') || this.#version)
    const all = namespace === 'default' ? (this.#states.get(version) ?? []) : []
    const selected = query.has('labelSelector') ? all.filter((pod) => isOdd(pod)) : all
    const behind = selected.filter(({ name }) => name > start)
    const limit = Number(query.get('limit') ?? behind.length)
    const items = behind.slice(0, limit)
    const next = items.length < behind.length ? { continue: `${version} ${items.at(-1)?.name}` } : {}
    return { metadata: { resourceVersion: String(version), ...next }, items: items.map(shown) }
  }
}

/** The only selector that it knows: writes move pods into it, and out of it. */
export const ODD = 'odd=true'

function isOdd({ version }: StubPod): boolean {
  return version % 2 === 1
}

function shown(pod: StubPod): object {
  const { name, note, version } = pod
  const meta = { name, namespace: 'default', uid: name, resourceVersion: String(version), annotations: { note } }
  const metadata = { ...meta, labels: { odd: String(isOdd(pod)) } }
  return { metadata, spec: { containers: [{ name: 'c', image: 'c' }] } }
}

function textOf(list: SentList): string {
  return JSON.stringify({ kind: 'PodList', apiVersion: 'v1', ...list })
}

/** UpstreamClusters of two members, east and west, and `all`, which reads both as one. @param federation more of `spec.federation` of it */
export function pagedFederation(
  [east, west]: readonly [PagedMember, PagedMember],
  clientCA: KeyPair,
  federation: object = {},
): UpstreamCluster[] {
  const resources = [{ version: 'v1', resource: 'pods' }]
  const members = Object.entries({ east, west }).map(([name, { stub }]) => clusterObject([stub], { name }))
  const { secureServing } = clusterObject([], { name: 'all', clientCA }).spec
  const spec = {
    secureServing,
    dispatchPolicies: [ALLOW_ALL],
    members: members.map(({ metadata }) => ({ name: metadata.name, trustUsers: true })),
    federation: { resources, ...federation },
  }
  const all = { ...clusterObject([], { name: 'all' }), spec }
  return [
    ...members.map((one) => ({ ...one, spec: { ...one.spec, cache: resources } })),
    all,
  ] as unknown as UpstreamCluster[]
}
