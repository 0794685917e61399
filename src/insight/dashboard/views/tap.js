import { useEffect, useRef, useState } from 'preact/hooks'
import { Fragment as _Fragment, jsx as _jsx, jsxs as _jsxs } from 'preact/jsx-runtime'
import { clock, latency, plural, whole } from '../data/format.ts'
import { clusterLink } from '../data/route.ts'
import { shellLine } from '../data/shell.ts'
import { NOTHING_TAPPED, readTap } from '../data/tap-stream.ts'
import { Command } from '../parts/command.tsx'
import { Nothing, Pane, Table } from '../parts/pane.tsx'
import { State } from '../parts/state.tsx'

const FIELDS = [
  ['cluster', 'Cluster', 'prod'],
  ['user', 'User', 'system:serviceaccount:ci:*'],
  ['userAgent', 'User agent', 'kubectl*'],
  ['verb', 'Verb', 'list'],
  ['resource', 'Resource', 'pods'],
  ['namespace', 'Namespace', 'default'],
  ['code', 'Status', '429 or 5xx'],
]
const FLAGS = { userAgent: '--user-agent' }
/** Requests a second: more than somebody can read. */
const RATE = '20'
export function TapView() {
  const [state, setState] = useState()
  const [line, setLine] = useState('')
  const running = useRef(undefined)
  const stop = () => running.current?.abort()
  useEffect(() => {
    // Nobody looks: the gateway need not look either.
    const onHidden = () => {
      if (document.hidden) stop()
    }
    document.addEventListener('visibilitychange', onHidden)
    return () => {
      document.removeEventListener('visibilitychange', onHidden)
      stop()
    }
  }, [])
  const start = (event) => {
    event.preventDefault()
    stop()
    const { query, command } = asked(new FormData(event.currentTarget))
    const controller = new AbortController()
    running.current = controller
    setLine(command)
    setState(NOTHING_TAPPED)
    void readTap(`/api/v1/tap?${query}`, controller.signal, (next) => {
      if (running.current === controller) setState(next)
    })
  }
  const runs = state !== undefined && state.ended === ''
  return _jsxs(_Fragment, {
    children: [
      _jsx('h1', { children: 'Tap' }),
      _jsx('p', {
        class: 'lead',
        children:
          'Requests as they end, without bodies and credentials. Who looks is written to the audit log. All of them with every field empty.',
      }),
      _jsxs('form', {
        class: 'form narrow',
        onSubmit: start,
        children: [
          FIELDS.map(([name, label, example]) =>
            _jsxs(
              'label',
              {
                children: [
                  _jsx('span', { children: label }),
                  _jsx('input', {
                    name: name,
                    placeholder: example,
                    autocomplete: 'off',
                    spellcheck: false,
                    maxLength: 256,
                  }),
                ],
              },
              name,
            ),
          ),
          _jsxs('label', {
            class: 'check',
            children: [
              _jsx('input', { type: 'checkbox', name: 'refused' }),
              ' ',
              _jsx('span', { children: 'only refused ones' }),
            ],
          }),
          _jsxs('div', {
            class: 'buttons',
            children: [
              _jsx('button', { type: 'submit', children: runs ? 'Start again' : 'Start' }),
              _jsx('button', { type: 'button', onClick: stop, disabled: !runs, children: 'Stop' }),
            ],
          }),
        ],
      }),
      state !== undefined && _jsx(Requests, { state: state }),
      line !== '' && _jsx(Command, { does: 'The same on the command line', line: line }),
    ],
  })
}
function asked(form) {
  const query = new URLSearchParams({ maxRps: RATE, replicas: 'all' })
  const words = ['portcullis', 'tap']
  for (const [name] of FIELDS) {
    const value = form.get(name)
    if (typeof value !== 'string' || value.trim() === '') continue
    query.append(name, value.trim())
    if (name === 'cluster') words.push(value.trim())
    else words.push(FLAGS[name] ?? `--${name}`, value.trim())
  }
  if (form.get('refused') !== null) {
    query.set('refused', 'true')
    words.push('--refused')
  }
  return { query, command: shellLine(...words) }
}
function Requests({ state }) {
  const { rows, shown, dropped, seen, ended } = state
  return _jsxs(Pane, {
    id: 'tap',
    title: 'Requests',
    note: `the newest first, ${whole(shown)} shown`,
    children: [
      _jsxs('p', {
        role: 'status',
        children: [
          ended === ''
            ? _jsx(State, { tone: 'good', children: 'live' })
            : _jsx(State, { tone: 'neutral', children: ended }),
          dropped > 0 &&
            _jsxs(_Fragment, {
              children: [
                ' ',
                _jsxs(State, {
                  tone: 'warn',
                  children: [plural(dropped, 'request'), ' matched and came too fast to be shown'],
                }),
              ],
            }),
        ],
      }),
      rows.length === 0
        ? _jsx(Nothing, {
            children: seen > 0 ? `None of ${plural(seen, 'request')} seen so far matches.` : 'No request has come yet.',
          })
        : _jsx(Table, {
            label: 'Requests',
            head: ['Time', 'Cluster', 'User', 'Verb', 'What', '#Status', '#Took', 'User agent', 'Address'],
            children: rows.map((row, i) => _jsx(Row, { row: row }, `${row.auditID} ${row.replica} ${shown - i}`)),
          }),
    ],
  })
}
function Row({ row }) {
  const { cluster, code, refusal, refusedBy } = row
  const why = [refusal, refusedBy].filter((part) => part !== '').join(' ')
  return _jsxs('tr', {
    children: [
      _jsx('td', { class: 'number', children: clock(Date.parse(row.time)) }),
      _jsx('th', {
        scope: 'row',
        children: cluster === '' ? '–' : _jsx('a', { href: clusterLink(cluster), children: cluster }),
      }),
      _jsx('td', { children: row.user }),
      _jsx('td', { children: row.verb === '' ? row.method : row.verb }),
      _jsxs('td', {
        children: [
          whatOf(row),
          why !== '' && _jsxs(_Fragment, { children: [' ', _jsx(State, { tone: 'warn', children: why })] }),
        ],
      }),
      _jsx('td', {
        class: 'number',
        children:
          code === 0
            ? 'none'
            : code >= 500
              ? _jsx(State, { tone: 'bad', children: code })
              : code >= 400
                ? _jsx(State, { tone: 'warn', children: code })
                : code,
      }),
      _jsx('td', { class: 'number', children: row.totalMs < 0 ? '–' : latency(row.totalMs) }),
      _jsx('td', { class: 'meta', children: row.userAgent }),
      _jsx('td', { class: 'meta', children: row.address }),
    ],
  })
}
function whatOf({ resource, subresource, apiGroup, namespace, name, path, query }) {
  if (resource === '') return `${path}${query === '' ? '' : `?${query}`}`
  const kind = [resource, subresource].filter((part) => part !== '').join('/')
  const place = [namespace, name].filter((part) => part !== '').join('/')
  const asked = query === '' ? '' : ` ?${query}`
  return `${kind}${apiGroup === '' ? '' : `.${apiGroup}`}${place === '' ? '' : ` ${place}`}${asked}`
}
