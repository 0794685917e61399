import { useState } from 'preact/hooks'
import { jsx as _jsx, jsxs as _jsxs } from 'preact/jsx-runtime'
import { count, latency, share, whole } from '../data/format.ts'
import { usePoll } from '../data/poll.ts'
import { shellLine } from '../data/shell.ts'
import { Command } from './command.tsx'
import { Nothing, Table } from './pane.tsx'

const EVERY_MS = 10000
const ROWS = 8
const BY = [
  ['user', 'users'],
  ['userAgent', 'user agents'],
  ['namespace', 'namespaces'],
  ['resource', 'resources'],
  ['address', 'addresses'],
]
const SORTS = [
  ['requests', 'requests'],
  ['upstream-seconds', 'upstream time'],
  ['listed-bytes', 'bytes listed'],
  ['refused', 'refusals'],
]
/** @param cluster '' = of all */
export function TopClients({ cluster }) {
  const [by, setBy] = useState('user')
  const [sort, setSort] = useState('requests')
  const query = new URLSearchParams({ by, sort, minutes: '5', limit: String(ROWS), replicas: 'all' })
  if (cluster !== '') query.set('cluster', cluster)
  const { data } = usePoll(`/api/v1/top?${query}`, EVERY_MS)
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
  return _jsxs('section', {
    class: 'pane',
    'aria-labelledby': 'top',
    children: [
      _jsxs('div', {
        class: 'bar',
        children: [
          _jsxs('h2', { id: 'top', children: ['Top talkers ', _jsx('small', { children: 'last 5 minutes' })] }),
          _jsxs('div', {
            class: 'chooser',
            children: [
              _jsx('select', {
                'aria-label': 'Who',
                value: by,
                onChange: (event) => setBy(event.currentTarget.value),
                children: BY.map(([value, word]) => _jsx('option', { value: value, children: word }, value)),
              }),
              _jsx('select', {
                'aria-label': 'By what',
                value: sort,
                onChange: (event) => setSort(event.currentTarget.value),
                children: SORTS.map(([value, word]) =>
                  _jsxs('option', { value: value, children: ['by ', word] }, value),
                ),
              }),
            ],
          }),
        ],
      }),
      data.rows.length === 0 ? _jsx(Nothing, { children: 'Nobody has asked.' }) : _jsx(Rows, { top: data, sort: sort }),
      _jsx(Command, { does: 'More of it, on the command line', line: line }),
    ],
  })
}
function Rows({ top, sort }) {
  const { rows, seconds, total } = top
  const last =
    sort === 'listed-bytes'
      ? ['#listed', (row) => bytes(row.listedBytes)]
      : sort === 'refused'
        ? ['#refused', (row) => whole(row.refused)]
        : ['#upstream', (row) => (total.upstreamSeconds > 0 ? share(row.upstreamSeconds / total.upstreamSeconds) : '–')]
  return _jsx(Table, {
    label: 'Top talkers',
    head: ['Name', '#req/s', '#share', '#mean', last[0]],
    children: rows.map((row) =>
      _jsxs(
        'tr',
        {
          children: [
            _jsx('th', { scope: 'row', children: row.name }),
            _jsx('td', { class: 'number', children: count(row.requests / Math.max(seconds, 1)) }),
            _jsx('td', { class: 'number', children: total.requests > 0 ? share(row.requests / total.requests) : '–' }),
            _jsx('td', { class: 'number', children: latency(row.latencySeconds * 1000) }),
            _jsx('td', { class: 'number', children: last[1](row) }),
          ],
        },
        row.name,
      ),
    ),
  })
}
function bytes(value) {
  return value < 1024
    ? `${value} B`
    : value < 1024 ** 2
      ? `${count(value / 1024)} KiB`
      : `${count(value / 1024 ** 2)} MiB`
}
