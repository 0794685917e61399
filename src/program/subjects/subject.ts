// What a subject adds to the program. Whatever is a function returning a promise loads modules, so that each command and thread loads only its own.

import type { Command } from 'commander'
import type { CommandContext } from '../../cli/command/output.ts'
import type { SubjectMetrics } from '../../gateway/metrics/metric.ts'
import type { GatewayMetrics } from '../../gateway/metrics/metrics.ts'
import type { MetricsRecorder } from '../../gateway/metrics/recorder.ts'
import type { SubjectFilters } from '../../gateway/request/exchange/decision.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import type { Leading } from '../../kube/controllers/kernel/leadership.ts'
import type { KubeClient } from '../../kube/io/client.ts'
import type { Running } from '../../process/components/component.ts'
import type { Config } from '../../process/config/config.ts'
import type { TopicChannel } from '../../process/core/topics/topics.ts'
import type { ProtectionGate } from '../../protection/api/protection.ts'

export interface Subject {
  /** Its custom kinds. What they held last is kept on disk, for a start without the API server (last-good/). */
  readonly kinds: readonly ResourceKind[]
  /** Fields of UpstreamCluster that have no effect without it: a warning says so then. Default: none. */
  readonly fields?: readonly 'scaleProtection'[]
  /** Its rows of the table of metrics. */
  readonly metrics: SubjectMetrics
  readonly addCommands?: (program: Command, context: CommandContext) => void
  /** Its filters, created once for each gateway thread. */
  readonly filters?: () => Promise<CreateFilters>
  /** A component of the process that is started before the ports open. */
  readonly component?: SubjectComponent
  /** What it runs with the statuses and their leader, if the objects are in an API server. */
  readonly led?: () => Promise<StartLed>
}

/** What a gateway thread gives to a subject. */
interface SubjectThread {
  readonly metrics: MetricsRecorder
  /** Evaluates deletions of pods. */
  readonly gate: ProtectionGate
  /** To the main thread. */
  readonly topics: TopicChannel
}

/** What the main thread gives to a subject. */
interface SubjectMain {
  readonly config: Config
  /** undefined = the objects are files. */
  readonly client: ObjectClient | undefined
  /** Connects to a cluster as the gateway itself. */
  readonly clientOf: (cluster: string) => KubeClient
  readonly metrics: Pick<GatewayMetrics, 'families'>
  /** To the gateway threads. */
  readonly topics: TopicChannel
  readonly clock: Clock
  readonly log: Logger
}

interface SubjectLed extends Pick<SubjectMain, 'clientOf' | 'topics' | 'clock' | 'log'> {
  readonly client: ObjectClient
  /** The name of this process. */
  readonly replica: string
  readonly leadership: Leading
  readonly clusters: { names(): Iterable<string> }
}

interface RunningSubject extends Running {
  /** Resolves when what it must know before the first request is known, or after `withinMs`. */
  known?(withinMs: number): Promise<void>
  /** Its state in /debug/config. */
  describe?(): object
}

export interface SubjectComponent {
  /** For the log. */
  readonly name: string
  /** The name of its state in /debug/config. */
  readonly state: string
  load(): Promise<StartSubject>
}

export type CreateFilters = (thread: SubjectThread) => SubjectFilters
/** undefined = disabled. */
export type StartSubject = (main: SubjectMain) => RunningSubject | undefined
export type StartLed = (led: SubjectLed) => Pick<Running, 'stop'>
