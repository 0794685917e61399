// The filter that has sessions recorded where spec.audit.sessions says so, and refuses those that must be and cannot.

import type { CompiledSessionRecording } from '../../gateway/core/cluster/compiled-cluster.ts'
import { readSessionRequest, type SessionKind, sessionKind } from '../../gateway/core/request/session-request.ts'
import type { Decision, RequestFilter } from '../../gateway/request/exchange/decision.ts'
import type { Refusal } from '../../kit/core/refusal/refusal.ts'
import { ONE_BYTE_PER_CODE_POINT, type RecordedSession } from '../core/recording/asciicast.ts'
import { recordingName } from '../core/recording/file-name.ts'
import type { RecordingResult } from '../core/recording/recording-settings.ts'
import type { Recordings } from '../io/recordings.ts'
import { notRecorded, type RecorderOptions, SessionRecorder } from './session-recorder.ts'

interface SessionRecordingOptions extends Pick<RecorderOptions, 'inflater' | 'clock'> {
  readonly recordings: Pick<Recordings, 'unavailableTo' | 'slotOf' | 'open'>
  counted(cluster: string, result: RecordingResult): void
}

export class SessionRecordingFilter implements RequestFilter {
  readonly #options: SessionRecordingOptions

  constructor(options: SessionRecordingOptions) {
    this.#options = options
  }

  shadow(): boolean {
    return false
  }

  check(decision: Decision): Refusal | undefined {
    if (!decision.isUpgrade) return undefined
    const { info } = decision
    const kind = sessionKind(info)
    const settings = settingsFor(decision, kind)
    if (settings === undefined) return undefined
    const cluster = decision.cluster.name
    if (kind === undefined) {
      // A kubelet serves exec and attach there, too, and no channel of it is known to be one.
      const isKubelet = info.isResourceRequest && info.resource === 'nodes' && info.subresource === 'proxy'
      if (isKubelet && settings.isRequired) return this.#refused(cluster, 'it goes to a kubelet through nodes/proxy')
      return undefined
    }
    const unavailable = this.#options.recordings.unavailableTo(decision.exchange.charge)
    if (unavailable !== '' && settings.isRequired) return this.#refused(cluster, unavailable)
    decision.tap = this.#recorder(decision, kind, settings)
    return undefined
  }

  #refused(cluster: string, why: string): Refusal {
    this.#options.counted(cluster, 'refused')
    return notRecorded(cluster, why)
  }

  #recorder(decision: Decision, kind: SessionKind, { input, isRequired }: RecordingDemand): SessionRecorder {
    const { recordings, inflater, clock, counted } = this.#options
    const { exchange, cluster } = decision
    const { charge } = exchange
    const slot = recordings.slotOf(charge)
    // Not the Audit-ID, which clients may choose.
    const uuid = exchange.gw.uuid()
    const name = recordingName({ nowMs: decision.moment.nowMs, cluster: cluster.name, slot, uuid })
    return new SessionRecorder({
      recordings,
      inflater,
      clock,
      name,
      charge,
      about: aboutOf(decision, kind, input),
      isRequired,
      isStopping: () => exchange.gw.draining,
      counted: (result) => counted(cluster.name, result),
    })
  }
}

/** How a session is recorded. */
interface RecordingDemand {
  readonly input: boolean
  readonly isRequired: boolean
}

/** A session in a member of another cluster is recorded as both demand. */
function settingsFor({ cluster, cameBy }: Decision, kind: SessionKind | undefined): RecordingDemand | undefined {
  const own = demandOf(cluster.sessionRecording, kind)
  const before = demandOf(cameBy?.cluster.sessionRecording, kind)
  if (own === undefined || before === undefined) return own ?? before
  return { input: own.input || before.input, isRequired: own.isRequired || before.isRequired }
}

function demandOf(
  settings: CompiledSessionRecording | undefined,
  kind: SessionKind | undefined,
): RecordingDemand | undefined {
  if (settings === undefined || kind !== 'portforward') return settings
  const { portForwards, isRequired } = settings
  return portForwards === 'None' ? undefined : { input: portForwards === 'InputAndOutput', isRequired }
}

/** The user and what the query names, never a header. */
function aboutOf(
  { exchange, user, cluster }: Decision,
  kind: SessionKind,
  input: boolean,
): Omit<RecordedSession, 'protocol'> {
  const { record, target } = exchange
  const { container, command, ports } = readSessionRequest(kind, target)
  return {
    cluster: cluster.name,
    user: user.name,
    groups: user.groups,
    impersonator: record.impersonator,
    namespace: record.namespace,
    pod: record.name,
    container,
    kind,
    command,
    auditId: record.auditId,
    remoteAddress: record.remoteAddress,
    input,
    ...(kind === 'portforward' && { ports, dataEncoding: ONE_BYTE_PER_CODE_POINT }),
  }
}
