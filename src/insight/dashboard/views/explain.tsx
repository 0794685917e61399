// What the gateway would do with a request: a form for `portcullis explain`.

import type { TargetedEvent, VNode } from 'preact'
import { useState } from 'preact/hooks'
import { shellLine } from '../data/shell.ts'
import { Command } from '../parts/command.tsx'
import { Nothing, Pane, Table } from '../parts/pane.tsx'
import { State } from '../parts/state.tsx'

/** Displayed fields of the response. */
interface Explanation {
  readonly requestInfo: Readonly<Record<string, string | boolean>> | null
  readonly cluster: string | null
  readonly policy: number | null
  readonly rule: number | null
  readonly flowControl: string | null
  readonly endpoints: readonly string[]
  readonly decision: 'forward' | 'refuse'
  readonly code: number
  readonly reason: string
  readonly message: string
}

const FIELDS = [
  ['host', 'Host or cluster', 'prod', 'The host name that the client requests'],
  ['target', 'Path', '/api/v1/namespaces/default/pods', 'With the query, as in the request line'],
  ['user', 'User', 'alice', 'Empty: anonymous'],
  ['groups', 'Groups', 'dev, ops', 'Separated by commas; empty: the groups that Kubernetes gives the user'],
  ['userAgent', 'User-Agent', 'kubectl/v1.34', ''],
  ['remoteAddress', 'Client address', '10.1.2.3', ''],
] as const
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']

export function ExplainView(): VNode {
  const [answer, setAnswer] = useState<Explanation | undefined>()
  const [problem, setProblem] = useState('')
  const [line, setLine] = useState('')
  const ask = async (event: TargetedEvent<HTMLFormElement, SubmitEvent>): Promise<void> => {
    event.preventDefault()
    const query = queryOf(new FormData(event.currentTarget))
    setLine(commandOf(query))
    try {
      const response = await fetch(`/api/v1/explain?${query}`, { cache: 'no-store', redirect: 'error' })
      if (response.status === 401) location.reload()
      if (response.ok) setAnswer((await response.json()) as Explanation)
      setProblem(response.ok ? '' : (await response.text()).slice(0, 300))
    } catch {
      setProblem('The gateway does not answer.')
    }
  }
  return (
    <>
      <h1>Explain a request</h1>
      <p class="lead">What the gateway would do with it, and why. Nothing is sent anywhere.</p>
      <form class="form" onSubmit={(event) => void ask(event)}>
        <label>
          <span>Method</span>
          <select name="method">
            {METHODS.map((method) => (
              <option key={method}>{method}</option>
            ))}
          </select>
        </label>
        {FIELDS.map(([name, label, example, hint]) => (
          <label key={name} class={name}>
            <span>{label}</span>
            <input
              name={name}
              placeholder={example}
              required={name === 'target'}
              autocomplete="off"
              spellcheck={false}
              maxLength={4096}
              aria-describedby={hint === '' ? undefined : `${name}-hint`}
            />
            {hint !== '' && <small id={`${name}-hint`}>{hint}</small>}
          </label>
        ))}
        <button type="submit">Explain</button>
      </form>
      <div role="status">
        {problem !== '' && <State tone="bad">{problem}</State>}
        {answer !== undefined && problem === '' && <Answer answer={answer} />}
      </div>
      {line !== '' && <Command does="The same on the command line" line={line} />}
    </>
  )
}

function queryOf(form: FormData): URLSearchParams {
  const query = new URLSearchParams()
  for (const [name, value] of form) {
    if (typeof value !== 'string' || value.trim() === '') continue
    if (name === 'groups') for (const group of value.split(',')) query.append('group', group.trim())
    else query.set(name, value.trim())
  }
  return query
}

function commandOf(query: URLSearchParams): string {
  const words = ['portcullis', 'explain', query.get('method') ?? 'GET', query.get('target') ?? '/']
  for (const [name, flag] of [
    ['host', '--host'],
    ['user', '--user'],
    ['userAgent', '--user-agent'],
    ['remoteAddress', '--address'],
  ] as const) {
    const value = query.get(name)
    if (value !== null) words.push(flag, value)
  }
  for (const group of query.getAll('group')) words.push('--group', group)
  return shellLine(...words)
}

function Answer({ answer }: { readonly answer: Explanation }): VNode {
  const { requestInfo, cluster, policy, rule, flowControl, endpoints, decision, code, reason, message } = answer
  const rows: [string, string][] = Object.entries(requestInfo ?? {}).flatMap(([name, value]): [string, string][] =>
    value === '' ? [] : [[name, String(value)]],
  )
  rows.push(
    ['cluster', cluster ?? 'none'],
    ['policy', policy === null ? 'none' : `dispatchPolicies[${policy}].rules[${rule}]`],
    ['limit', flowControl ?? 'none'],
    ['endpoints', endpoints.length === 0 ? 'none' : endpoints.join(', ')],
  )
  return (
    <Pane id="answer" title={decision === 'forward' ? 'Forwarded' : 'Refused'}>
      <p>
        {decision === 'forward' ? (
          <State tone="good">forwarded</State>
        ) : (
          <State tone="bad">
            {code} {reason}
          </State>
        )}
      </p>
      {message === '' ? <Nothing>{''}</Nothing> : <p>{message}</p>}
      <Table label="Details" head={['Field', 'Value']}>
        {rows.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td class="mono">{value}</td>
          </tr>
        ))}
      </Table>
    </Pane>
  )
}
