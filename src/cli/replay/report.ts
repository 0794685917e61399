// What a replay has found, for people. Users, targets and Audit-IDs come from clients: no control character reaches the terminal.

import type { LimitTotal } from '../../core/replay/limit-totals.ts'
import type { ChangeGroup, ReplaySummary } from '../../core/replay/summary.ts'
import { printable } from '../../core/text/printable.ts'
import { textTable } from '../client/text-table.ts'
import type { LogReading } from './read-log.ts'

export function replayReport(log: string, reading: LogReading, summary: ReplaySummary): string {
  const { requests, from, to, changed, changes, shadowChanged, shadowChanges, limits } = summary
  const lines = [`${log}: ${requests} requests${requests === 0 ? '' : `, from ${from} to ${to}`}`]
  lines.push(...readingLines(reading, summary))
  lines.push(requests === 0 ? '' : `another answer: ${changed} requests${share(changed, requests)}`)
  const text = `${lines.filter((line) => line !== '').join('\n')}\n${limitsText(limits)}${changes.map(groupText).join('')}`
  if (shadowChanged === 0) return text
  const title = `\nin shadow mode, something else would be said of ${shadowChanged} requests${share(shadowChanged, requests)}\n`
  return `${text}${title}${shadowChanges.map(groupText).join('')}`
}

function readingLines(
  { damaged, damagedLines, otherLines }: LogReading,
  { notEvaluated, assumed, late }: ReplaySummary,
): string[] {
  const named = damagedLines.map(({ line, error }) => `${line} (${error})`).join(', ')
  const more = damaged > damagedLines.length ? ', ...' : ''
  return [
    damaged === 0 ? '' : `damaged: ${damaged} lines: ${named}${more}`,
    otherLines === 0 ? '' : `of the gateway's own log: ${otherLines} lines, left out`,
    notEvaluated === 0 ? '' : `refused before it was known who sent them: ${notEvaluated}, taken to be refused again`,
    assumed === 0 ? '' : `also decided by PodProtectors or by the body: ${assumed}, taken to be decided as in the log`,
    late === 0 ? '' : `out of order by more than a minute: ${late}, whose tokens and slots are not counted`,
  ]
}

function limitsText(limits: readonly LimitTotal[]): string {
  if (limits.length === 0) return ''
  const lines = limits.map(({ cluster, limit, refused, wouldRefuse }) => {
    return `  ${printable(`${cluster} ${limit}: refused ${refused}, would refuse about ${wouldRefuse}`)}\n`
  })
  return `limits, as totals: which requests they refuse is compared by --compare only\n${lines.join('')}`
}

function groupText({ cluster, was, wouldBe, requests, users, resources, examples }: ChangeGroup): string {
  const top = (all: ChangeGroup['users']): string => all.map(({ name, requests: n }) => `${name} ${n}`).join(', ')
  const rows = [
    ['users', top(users)],
    ['resources', top(resources)],
    ...examples.map(({ auditID, time, user, method, target, message }, i) => {
      return [i === 0 ? 'examples' : '', `${auditID} ${time} ${user} ${method} ${target}: ${message}`]
    }),
  ]
  const title = `${cluster === '' ? '(no cluster)' : cluster}: ${was} -> ${wouldBe}: ${requests} requests`
  return `\n${printable(title)}\n${textTable(
    rows.map((row) => row.map(printable)),
    '  ',
  )}`
}

function share(part: number, all: number): string {
  return all === 0 || part === 0 ? '' : ` (${Math.max(0.1, Math.round((1000 * part) / all) / 10)} %)`
}
