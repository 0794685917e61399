// The two sides of a storm, as processes (test/harness/go/storm): a crowd of client-go reflectors, each on a connection of its own, and
// the API server that they list and watch. A command is a line, and its answer is one.

import { binaries } from '../binaries.ts'
import { type LineProgram, startLineProgram } from '../line-program.ts'

/** What has become of the clients since the last mark. */
export interface CrowdStats {
  readonly clients: number
  /** Clients with an open watch now. */
  readonly watching: number
  /** Clients that have lost a watch. */
  readonly lost: number
  /** Clients that have opened one. */
  readonly back: number
  readonly dials: number
  readonly handshakes: number
  /** How many of the handshakes resumed a session. */
  readonly resumed: number
  readonly lists: number
  readonly watches: number
  /** `list 200`, `watch 429 Retry-After 3`, `list connection refused`, `watch ended: EOF` ... -> how often. */
  readonly answers: Readonly<Record<string, number>>
  /** The most of a single client. */
  readonly mostDials: number
  readonly mostHandshakes: number
  readonly mostLists: number
  readonly mostWatches: number
  /** Milliseconds from the mark until clients were back. */
  readonly backP50: number
  readonly backP99: number
  readonly backLast: number
  /** The number of the client that was the last to be back. */
  readonly slowest: number
  /** Numbers of up to ten that are not watching. */
  readonly missing: readonly number[]
}

/** What the API server has been asked since its start. */
export interface UpstreamStats {
  readonly lists: number
  /** Lists that it answered with 429. */
  readonly refused: number
  readonly watches: number
  /** Watches whose resourceVersion had expired. */
  readonly expired: number
  readonly reviews: number
  /** Probes and questions for rights. */
  readonly others: number
  readonly watching: number
  readonly mostListing: number
  readonly mostReviewing: number
  readonly mostListsASecond: number
}

export interface CrowdOptions {
  /** host:port of the gateways; the clients are spread over them, and go to the next where none listens. */
  readonly servers: readonly string[]
  /** SNI and :authority. */
  readonly host: string
  /** Files of the CA that signs the clients' certificates. Not needed with `tokens`. */
  readonly ca?: { readonly cert: string; readonly key: string }
  readonly clients: number
  /** Number of the first client, when several processes are one crowd. Default 0. */
  readonly first?: number
  /** Different certificates, each a user of its own. Default 16. */
  readonly certificates?: number
  /** RSA keys of 2,048 bits instead of P-256. Default false. */
  readonly rsa?: boolean
  /** Prefix of bearer tokens instead of certificates, a user of its own for each client. */
  readonly tokens?: string
  /** Clients that share a loopback address. Default 50. */
  readonly perAddress?: number
  /** TLS sessions are offered for resumption, which client-go does not. Default false. */
  readonly resume?: boolean
  /** A file for a line of each client's every event. */
  readonly log?: string
  /** What of the core group they watch, in the namespace `storm`. Default configmaps. */
  readonly resource?: string
  /** As client-go of Kubernetes 1.35 and later: a list is a watch that begins with all objects. Default false: LIST, then WATCH. */
  readonly watchList?: boolean
  readonly launch?: Launch
}

export interface StormUpstreamOptions {
  readonly port: number
  readonly cert: string
  readonly key: string
  /** Objects in a list. Default 5. */
  readonly items?: number
  /** The resourceVersion that it begins with: watches from an older one have expired, as after the restart of an apiserver. Default 1000. */
  readonly version?: number
  /** Lists at once; others get 429 and Retry-After 1. Default: any number. */
  readonly inflight?: number
  readonly listMs?: number
  readonly reviewMs?: number
  readonly launch?: Launch
}

/** In front of the command line, e.g. taskset and nice. Default: nothing. */
export type Launch = readonly string[]

export type StormProgram<Stats> = LineProgram<Stats>
export type Crowd = StormProgram<CrowdStats>
export type StormUpstream = StormProgram<UpstreamStats>

/** Resolves when the clients are ready to be started by the command `start`. */
export function startCrowd(options: CrowdOptions): Promise<Crowd> {
  const { ca, tokens, log, resource } = options
  return launch<CrowdStats>(
    [
      'clients',
      `-servers=${options.servers.join()}`,
      `-host=${options.host}`,
      ...(ca === undefined ? [] : [`-ca-cert=${ca.cert}`, `-ca-key=${ca.key}`]),
      `-clients=${options.clients}`,
      `-first=${options.first ?? 0}`,
      `-certificates=${options.certificates ?? 16}`,
      `-rsa=${options.rsa === true}`,
      ...(tokens === undefined ? [] : [`-tokens=${tokens}`]),
      `-per-address=${options.perAddress ?? 50}`,
      `-resume=${options.resume === true}`,
      ...(log === undefined ? [] : [`-log=${log}`]),
      ...(resource === undefined ? [] : [`-resource=${resource}`]),
    ],
    options.launch,
    { KUBE_FEATURE_WatchListClient: String(options.watchList === true) },
  )
}

/** Resolves when it listens. */
export function startStormUpstream(options: StormUpstreamOptions): Promise<StormUpstream> {
  return launch<UpstreamStats>(
    [
      'upstream',
      `-address=127.0.0.1:${options.port}`,
      `-cert=${options.cert}`,
      `-key=${options.key}`,
      `-items=${options.items ?? 5}`,
      `-version=${options.version ?? 1000}`,
      `-inflight=${options.inflight ?? 0}`,
      `-list-ms=${options.listMs ?? 0}`,
      `-review-ms=${options.reviewMs ?? 0}`,
    ],
    options.launch,
  )
}

async function launch<Stats>(
  args: readonly string[],
  before: Launch = [],
  env: Readonly<Record<string, string>> = {},
): Promise<StormProgram<Stats>> {
  const { storm } = await binaries()
  const [first = storm, ...rest] = [...before, storm, ...args]
  return await startLineProgram<Stats>(`storm ${args[0]}`, first, rest, { GOGC: '200', ...env })
}
