// Top talkers: the users and programs of `portcullis top`. Absent if the gateway does not count them.

import type { VNode } from 'preact'
import { useState } from 'preact/hooks'
import { byteCount, count, latency, share, whole } from '../data/format.ts'
import { usePoll } from '../data/poll.ts'
import { shellLine } from '../data/shell.ts'
import { Command } from './command.tsx'
import { Nothing, Table } from './pane.tsx'

/** Displayed fields of the /api/v1/top response. */
interface Top {
  readonly seconds: number
  readonly total: { readonly requests: number; readonly upstreamSeconds: number }
  readonly rows: readonly TopRow[]
}

interface TopRow {
  readonly name: string
  readonly requests: number
  readonly refused: number
  readonly listedBytes: number
  readonly upstreamSeconds: number
  readonly latencySeconds: number
}

const EVERY_MS = 10_000
const ROWS = 8
const BY = [
  ['user', 'users'],
  ['userAgent', 'user agents'],
  ['namespace', 'namespaces'],
  ['resource', 'resources'],
  ['address', 'addresses'],
] as const
const SORTS = [
  ['requests', 'requests'],
  ['upstream-seconds', 'upstream time'],
  ['listed-bytes', 'bytes listed'],
  ['refused', 'refusals'],
] as const

/** @param cluster '' = all clusters */
export function TopClients({ cluster }: { readonly cluster: string }): VNode | null {
  const [by, setBy] = useState<string>('user')
  const [sort, setSort] = useState<string>('requests')
  const query = new URLSearchParams({ by, sort, minutes: '5', limit: String(ROWS), replicas: 'all' })
  if (cluster !== '') query.set('cluster', cluster)
  const { data } = usePoll<Top>(`/api/v1/top?${query}`, EVERY_MS)
  if (data === undefined) return null
  const line = shellLine(
    'portcullis',
    'top',
    '--by',
    by,
    '--sort',
    sort,
    ...(cluster === '' ? [] : ['--cluster', cluster]),
  )
  return (
    <section class="pane" aria-labelledby="top">
      <div class="bar">
        <h2 id="top">
          Top talkers <small>last 5 minutes</small>
        </h2>
        <div class="chooser">
          <select aria-label="Grouped by" value={by} onChange={(event) => setBy(event.currentTarget.value)}>
            {BY.map(([value, word]) => (
              <option key={value} value={value}>
                {word}
              </option>
            ))}
          </select>
          <select aria-label="Sorted by" value={sort} onChange={(event) => setSort(event.currentTarget.value)}>
            {SORTS.map(([value, word]) => (
              <option key={value} value={value}>
                by {word}
              </option>
            ))}
          </select>
        </div>
      </div>
      {data.rows.length === 0 ? <Nothing>No requests.</Nothing> : <Rows top={data} sort={sort} />}
      <Command does="More on the command line" line={line} />
    </section>
  )
}

function Rows({ top, sort }: { readonly top: Top; readonly sort: string }): VNode {
  const { rows, seconds, total } = top
  const last: readonly [string, (row: TopRow) => string] =
    sort === 'listed-bytes'
      ? ['#listed', (row) => byteCount(row.listedBytes)]
      : sort === 'refused'
        ? ['#refused', (row) => whole(row.refused)]
        : ['#upstream', (row) => (total.upstreamSeconds > 0 ? share(row.upstreamSeconds / total.upstreamSeconds) : '–')]
  return (
    <Table label="Top talkers" head={['Name', '#req/s', '#share', '#mean', last[0]]}>
      {rows.map((row) => (
        <tr key={row.name}>
          <th scope="row">{row.name}</th>
          <td class="number">{count(row.requests / Math.max(seconds, 1))}</td>
          <td class="number">{total.requests > 0 ? share(row.requests / total.requests) : '–'}</td>
          <td class="number">{latency(row.latencySeconds * 1000)}</td>
          <td class="number">{last[1](row)}</td>
        </tr>
      ))}
    </Table>
  )
}
