// What a subject adds to the program. Whatever is a function returning a promise loads modules, so that each command and thread loads only its own.

import type { Command } from 'commander'
import type { Replicas } from '../../admin/app/replicas/replicas.ts'
import type { AdminRoute, CreateBrowserLogins } from '../../admin/io/server/route.ts'
import type { RevocationCheck } from '../../apiserver/access/revoked-credentials.ts'
import type { CommandContext } from '../../cli/command/output.ts'
import type { IdentitySeen } from '../../gateway/api/identity-seen.ts'
import type { PodProtectionInForce } from '../../gateway/api/pod-protection-in-force.ts'
import type { RequestObserver } from '../../gateway/api/request-observer.ts'
import type { Tracer } from '../../gateway/api/request-trace.ts'
import type { ResolvedCluster, ResourceSource, SourceChange, SourceError } from '../../gateway/api/resource-source.ts'
import type { SubjectField } from '../../gateway/api/upstream-cluster/checks.ts'
import type { ReadCacheInForce } from '../../gateway/api/upstream-cluster/read-cache/read-cache-in-force.ts'
import type { CellClocks } from '../../gateway/core/clocks/cell-clock.ts'
import type { PortAdmission } from '../../gateway/io/listener/connections.ts'
import type { CallsAs } from '../../gateway/io/upstream/kube-client.ts'
import type { SubjectMetrics } from '../../gateway/metrics/metric.ts'
import type { GatewayMetrics } from '../../gateway/metrics/metrics.ts'
import type { MetricsRecorder } from '../../gateway/metrics/recorder.ts'
import type { SubjectFilters } from '../../gateway/request/exchange/decision.ts'
import type { ClusterTable } from '../../gateway/state/clusters.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { AnswersMain, AnswersThreads, AsksMain, AsksThreads } from '../../kit/core/topics/questions.ts'
import type { StreamsToMain, SubscribesToThreads } from '../../kit/core/topics/streams.ts'
import type { TopicChannel } from '../../kit/core/topics/topics.ts'
import type { LineWriter } from '../../kit/io/logs/line-writer.ts'
import type { KindRole } from '../../kube/api/kind-role.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import type { Leading } from '../../kube/controllers/kernel/leadership.ts'
import type { KubeClient } from '../../kube/io/client.ts'
import type { KubeCallEvents } from '../../kube/io/client-events.ts'
import type { OwnCertificate } from '../../process/certificates/own-certificates.ts'
import type { Component, Running } from '../../process/components/component.ts'
import type { Config } from '../../process/config/config.ts'
import type { LastGoodStates } from '../last-good/states.ts'
import type { SettingGroup } from './settings.ts'

export interface Subject {
  /** Its custom kinds. What they held last is kept on disk, for a start without the API server (last-good/), except of `shared` ones. */
  readonly kinds: readonly ResourceKind[]
  /** Kinds that several of its controllers follow, by one watch that keeps no object. It keeps on disk itself what it needs of them. Default: none. */
  readonly shared?: readonly ResourceKind[]
  /** Custom kinds that the embedded API server alone has: in a cluster it could not enforce their rules. Default: none. */
  readonly embeddedKinds?: readonly ResourceKind[]
  /** Roles in the embedded API server, and the `user:NAME` and `group:NAME` that have them by the settings. Default: none. */
  readonly roles?: readonly { readonly role: KindRole; readonly given: (config: Config) => readonly string[] }[]
  /** Fields of UpstreamCluster that have no effect without it: a warning says so then. Default: none. */
  readonly fields?: readonly SubjectField[]
  /** Settings that have no effect without it, by their group: likewise. Default: none. */
  readonly settings?: readonly SettingGroup[]
  /** Its rows of the table of metrics, in which all threads count. Default: none. */
  readonly metrics?: SubjectMetrics
  readonly addCommands?: (program: Command, context: CommandContext) => void
  /** Checks its settings and the files that they name, before anything is written. */
  readonly check?: () => Promise<CheckSettings>
  /** Its filters, created once for each gateway thread. */
  readonly filters?: () => Promise<CreateFilters>
  /** What looks at the requests of each gateway thread, created before the thread's gateway. */
  readonly observers?: () => Promise<CreateObservers>
  /** Puts what it has over the UpstreamClusters of an API server (--source kubernetes). At most one subject does. */
  readonly overlay?: () => Promise<OverlaySource>
  /** A component of the process that is started before the ports open. */
  readonly component?: () => Promise<CreateComponent>
  /** What it runs with the statuses and their leader, if the objects are in an API server. */
  readonly led?: () => Promise<StartLed>
}

/** What a gateway thread gives to a subject. */
interface SubjectThread {
  readonly metrics: MetricsRecorder
  /** To the main thread. */
  readonly topics: TopicChannel
  readonly questions: AsksMain
}

/** What a gateway thread gives to the observers of a subject. */
export interface ObservedThread {
  readonly config: Config
  /** From 0. */
  readonly thread: number
  /** How many there are. */
  readonly threads: number
  readonly metrics: MetricsRecorder
  /** Answers what the main thread asks all threads. */
  readonly answers: AnswersMain
  readonly streams: StreamsToMain
  /** Users whose requests it has served lately. @param user the name of one; '' = all */
  identitiesSeen(user: string): readonly IdentitySeen[]
  readonly clock: Clock
}

/** What they hear costs every request: no promise, closure or timer. */
export interface SubjectObserver extends RequestObserver {
  /** Decides which requests are traced. At most one observer has one. */
  readonly tracer?: Tracer
  /** The requests of the thread have ended, or it ends: hands over what waits. */
  flush?(): void
}

/** Calls the listener now and whenever UpstreamClusters have changed, until the returned function is called. @param changed undefined = any */
export type OnApplied = (listener: (changed: ReadonlySet<string> | undefined) => void) => () => void

interface OverlayDeps extends Pick<SubjectMain, 'clock' | 'log'> {
  /** Delivers the objects as they are. */
  readonly source: ResourceSource
  /** Their API server. */
  readonly client: ObjectClient
  readonly dataDir: string
  /** Takes a line of the audit log. */
  audit(line: string): void
}

/** Delivers them as they are to be in force. */
export interface SourceOverlay extends ResourceSource {
  /** Whether the API server is reachable. */
  current(current: boolean): void
  /** A delivery is in force in all threads. */
  applied(change: SourceChange): void
  /** Who has set the degrade mode of a cluster on this machine, and when (RFC 3339); undefined = no user has. */
  switchedHere(cluster: string): { readonly by: string; readonly at: string } | undefined
}

/** What the main thread gives to a subject. */
export interface SubjectMain {
  readonly config: Config
  /** undefined = the objects are files. */
  readonly client: ObjectClient | undefined
  /** URL of their API server; '' = it is in this process, or there is none. */
  readonly server: string
  /** What is kept of them for a start without it. */
  readonly lastGood: Pick<LastGoodStates, 'waitMs' | 'keeperIfWritable'>
  /** Credentials that are revoked for webhooks; undefined = no such list. */
  readonly revoked: RevocationCheck | undefined
  /** Admission of clients at ports of the main thread, shared by all of them. */
  readonly admission: PortAdmission
  readonly clusters: ClusterTable
  readonly onApplied: OnApplied
  /** Connects to a cluster as the gateway itself. */
  readonly clientOf: (cluster: string, as?: CallsAs) => KubeClient
  readonly metrics: Pick<GatewayMetrics, 'families' | 'recorder' | 'beforeScrape' | 'changes'>
  /** Notified of calls to API servers. */
  readonly calls: KubeCallEvents
  /** To the gateway threads. */
  readonly topics: TopicChannel
  readonly questions: AnswersThreads
  /** `reports` resolves once their counts are up to date in `metrics`. */
  readonly pool: AsksThreads & SubscribesToThreads & { reports(): Promise<unknown> }
  /** Lines of the audit log; undefined = disabled. */
  readonly audit: LineWriter | undefined
  /** The other replicas, at their admin listeners. */
  readonly replicas: Replicas
  readonly shown: ShownState
  readonly waits: ForwardingWaits | undefined
  readonly clock: Clock
  readonly clocks: CellClocks
  readonly log: Logger
}

/** State of other parts, for those who show it. */
interface ShownState {
  problems(): readonly SourceError[]
  /** As it was delivered, with what it refers to. */
  object(cluster: string): ResolvedCluster | undefined
  /** The gateway's own certificates. */
  certificates(): readonly OwnCertificate[]
  /** Who has set the degrade mode of a cluster on this machine; undefined = no user has. */
  readonly switchedHere: SourceOverlay['switchedHere']
  /** undefined = pods are not protected. */
  podProtection(): PodProtectionInForce | undefined
  /** undefined = no reads are answered here. */
  readCache(): ReadCacheInForce | undefined
}

/** Milliseconds, of what is sent on to another machine. For tests; default: the usual ones. */
export interface ForwardingWaits {
  /** How long it waits for a batch to fill. */
  readonly batchMs?: number
  /** First retry delay. */
  readonly retryMs?: number
  /** Between two checks of files. */
  readonly lookMs?: number
}

interface SubjectLed extends Pick<SubjectMain, 'clusters' | 'onApplied' | 'clientOf' | 'topics' | 'clock' | 'log'> {
  readonly client: ObjectClient
  /** The name of this process. */
  readonly replica: string
  readonly leadership: Leading
}

export interface SubjectComponent extends Component {
  /** The name of its state in /debug/config. Default: it has none. */
  readonly state?: string
  /** null = there is nothing to say yet. */
  describe?(): object | null
  /** It takes what the gateway threads hand over until their end, so it starts before them and stops after them. Default: the other way round. */
  readonly outlivesThreads?: boolean
  /** What it adds to the admin listener, which answers from the first moment to the last. Default: nothing. */
  readonly routes?: readonly AdminRoute[]
  /** Logins of browsers at the admin listener. At most one component has them. */
  readonly browserLogins?: CreateBrowserLogins
  /** Resolves when what it must know before the first request is known, or after `withinMs`. */
  known?(withinMs: number): Promise<void>
  /** Port of its webhook; 0 = not open. */
  readonly webhookPort?: number
  /** Set by the one that protects pods: for statuses and the dashboard. */
  readonly podProtection?: PodProtectionInForce
  /** Set by the one that answers reads: likewise. */
  readonly readCache?: ReadCacheInForce
}

/** [] = none under these settings. */
export type CreateObservers = (thread: ObservedThread) => readonly SubjectObserver[]
export type CreateFilters = (thread: SubjectThread) => SubjectFilters
/** @throws {UserError} if the gateway cannot start */
export type CheckSettings = (config: Config) => void
/** Nothing runs before its start. @throws {UserError} for errors that the operator can fix */
export type CreateComponent = (main: SubjectMain) => SubjectComponent
export type StartLed = (led: SubjectLed) => Pick<Running, 'stop' | 'exposeMetrics'>
export type OverlaySource = (deps: OverlayDeps) => SourceOverlay
