// Names of recordings: TIME_CLUSTER_SLOT_ID.session. They sort by time, and say to which share of the directory a file belongs.

import { OTHER_SLOT } from './directory-room.ts'

/** Ends the name of a file that is being written, or whose gateway was killed. */
export const PART_SUFFIX = '.part'
const RECORDING_SUFFIX = '.session'
/** Names of files have at most 255 characters. */
const MAX_CLUSTER_IN_NAME = 100
/** Hex digits. */
const SLOT_DIGITS = 3

interface NamedRecording {
  /** Wall clock, milliseconds. */
  readonly nowMs: number
  readonly cluster: string
  /** That of its user. */
  readonly slot: number
  readonly uuid: string
}

export function recordingName({ nowMs, cluster, slot, uuid }: NamedRecording): string {
  const time = new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '')
  const named = cluster.replaceAll(/[^a-z0-9.-]/g, '-').slice(0, MAX_CLUSTER_IN_NAME)
  return `${time}_${named}_${slot.toString(16).padStart(SLOT_DIGITS, '0')}_${uuid}${RECORDING_SUFFIX}`
}

const NAME = /^(\d{4})(\d\d)(\d\d)T\d{6}Z_[a-z0-9.-]{0,100}_([0-9a-f]{3})_[0-9a-f-]{36}\.session(\.part)?$/

/** undefined = it is not the name of a recording. */
export function readRecordingName(name: string): RecordingName | undefined {
  const [, year = '', month = '', day = '', slot = '', part] = NAME.exec(name) ?? []
  if (year === '') return undefined
  return { day: `${year}/${month}/${day}`, slot: Number.parseInt(slot, 16), isPart: part !== undefined }
}

export interface RecordingName {
  /** `2026/01/31`, of its begin. */
  readonly day: string
  readonly slot: number
  readonly isPart: boolean
}

export function slotInName(name: string): number {
  return readRecordingName(name)?.slot ?? OTHER_SLOT
}
