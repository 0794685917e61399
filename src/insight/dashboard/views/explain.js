import { useState } from 'preact/hooks'
import { Fragment as _Fragment, jsx as _jsx, jsxs as _jsxs } from 'preact/jsx-runtime'
import { shellLine } from '../data/shell.ts'
import { Command } from '../parts/command.tsx'
import { Nothing, Pane, Table } from '../parts/pane.tsx'
import { State } from '../parts/state.tsx'

const FIELDS = [
  ['host', 'Host or cluster', 'prod', 'The host name that the client asks for'],
  ['target', 'Path', '/api/v1/namespaces/default/pods', 'With the query, as in the request line'],
  ['user', 'User', 'alice', 'Empty: anonymous'],
  ['groups', 'Groups', 'dev, ops', 'Separated by commas; empty: those that Kubernetes gives the user'],
  ['userAgent', 'User-Agent', 'kubectl/v1.34', ''],
  ['remoteAddress', 'Client address', '10.1.2.3', ''],
]
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']
export function ExplainView() {
  const [answer, setAnswer] = useState()
  const [problem, setProblem] = useState('')
  const [line, setLine] = useState('')
  const ask = async (event) => {
    event.preventDefault()
    const query = queryOf(new FormData(event.currentTarget))
    setLine(commandOf(query))
    try {
      const response = await fetch(`/api/v1/explain?${query}`, { cache: 'no-store', redirect: 'error' })
      if (response.status === 401) location.reload()
      if (response.ok) setAnswer(await response.json())
      setProblem(response.ok ? '' : (await response.text()).slice(0, 300))
    } catch {
      setProblem('The gateway does not answer.')
    }
  }
  return _jsxs(_Fragment, {
    children: [
      _jsx('h1', { children: 'Explain a request' }),
      _jsx('p', { class: 'lead', children: 'What the gateway would do with it, and why. Nothing is sent anywhere.' }),
      _jsxs('form', {
        class: 'form',
        onSubmit: (event) => void ask(event),
        children: [
          _jsxs('label', {
            children: [
              _jsx('span', { children: 'Method' }),
              _jsx('select', {
                name: 'method',
                children: METHODS.map((method) => _jsx('option', { children: method }, method)),
              }),
            ],
          }),
          FIELDS.map(([name, label, example, hint]) =>
            _jsxs(
              'label',
              {
                class: name,
                children: [
                  _jsx('span', { children: label }),
                  _jsx('input', {
                    name: name,
                    placeholder: example,
                    required: name === 'target',
                    autocomplete: 'off',
                    spellcheck: false,
                    maxLength: 4096,
                    'aria-describedby': hint === '' ? undefined : `${name}-hint`,
                  }),
                  hint !== '' && _jsx('small', { id: `${name}-hint`, children: hint }),
                ],
              },
              name,
            ),
          ),
          _jsx('button', { type: 'submit', children: 'Explain' }),
        ],
      }),
      _jsxs('div', {
        role: 'status',
        children: [
          problem !== '' && _jsx(State, { tone: 'bad', children: problem }),
          answer !== undefined && problem === '' && _jsx(Answer, { answer: answer }),
        ],
      }),
      line !== '' && _jsx(Command, { does: 'The same on the command line', line: line }),
    ],
  })
}
function queryOf(form) {
  const query = new URLSearchParams()
  for (const [name, value] of form) {
    if (typeof value !== 'string' || value.trim() === '') continue
    if (name === 'groups') for (const group of value.split(',')) query.append('group', group.trim())
    else query.set(name, value.trim())
  }
  return query
}
function commandOf(query) {
  const words = ['portcullis', 'explain', query.get('method') ?? 'GET', query.get('target') ?? '/']
  for (const [name, flag] of [
    ['host', '--host'],
    ['user', '--user'],
    ['userAgent', '--user-agent'],
    ['remoteAddress', '--address'],
  ]) {
    const value = query.get(name)
    if (value !== null) words.push(flag, value)
  }
  for (const group of query.getAll('group')) words.push('--group', group)
  return shellLine(...words)
}
function Answer({ answer }) {
  const { requestInfo, cluster, policy, rule, flowControl, endpoints, decision, code, reason, message } = answer
  const rows = Object.entries(requestInfo ?? {}).flatMap(([name, value]) =>
    value === '' ? [] : [[name, String(value)]],
  )
  rows.push(
    ['cluster', cluster ?? 'none'],
    ['policy', policy === null ? 'none' : `dispatchPolicies[${policy}].rules[${rule}]`],
    ['limit', flowControl ?? 'none'],
    ['endpoints', endpoints.length === 0 ? 'none' : endpoints.join(', ')],
  )
  return _jsxs(Pane, {
    id: 'answer',
    title: decision === 'forward' ? 'Forwarded' : 'Refused',
    children: [
      _jsx('p', {
        children:
          decision === 'forward'
            ? _jsx(State, { tone: 'good', children: 'forwarded' })
            : _jsxs(State, { tone: 'bad', children: [code, ' ', reason] }),
      }),
      message === '' ? _jsx(Nothing, { children: '' }) : _jsx('p', { children: message }),
      _jsx(Table, {
        label: 'What was found',
        head: ['Field', 'Value'],
        children: rows.map(([name, value]) =>
          _jsxs(
            'tr',
            {
              children: [_jsx('th', { scope: 'row', children: name }), _jsx('td', { class: 'mono', children: value })],
            },
            name,
          ),
        ),
      }),
    ],
  })
}
