// How a command ended, as a kubelet tells the client in the last message of a session: a metav1.Status in JSON, or text in old versions
// (apimachinery/pkg/util/remotecommand, k8s.io/cri-streaming/pkg/streaming/remotecommand).

import { isRecord, listOf, recordOf, textOf } from '../../../kit/api/json/object-shape.ts'

/** Characters of a failure's message that are kept. */
const MAX_OUTCOME = 256

/** @param told everything that came on the channel for errors; '' = nothing, and so nothing is known */
export function outcomeOf(told: string): string {
  if (told.trim() === '') return ''
  let status: unknown
  try {
    status = JSON.parse(told)
  } catch {
    // An old version, or not all of it.
  }
  if (!isRecord(status)) return `failure: ${told.trim()}`.slice(0, MAX_OUTCOME)
  if (status['status'] === 'Success') return 'success'
  const causes = listOf(recordOf(status['details'])['causes']).map(recordOf)
  const code = causes.find(({ reason }) => reason === 'ExitCode')
  if (code !== undefined) return `exit code ${textOf(code['message'])}`.slice(0, MAX_OUTCOME)
  return `failure: ${textOf(status['message'])}`.slice(0, MAX_OUTCOME)
}
