// Live requests: the stream of `portcullis tap`, newest first, limited in number.

import type { TargetedEvent, VNode } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { clock, latency, plural, whole } from '../data/format.ts'
import { clusterLink } from '../data/route.ts'
import { shellLine } from '../data/shell.ts'
import { NOTHING_TAPPED, readTap, type TapRow, type TapState } from '../data/tap-stream.ts'
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
] as const
const FLAGS: Readonly<Record<string, string>> = { userAgent: '--user-agent' }
/** Requests per second: more than one can read. */
const RATE = '20'

export function TapView(): VNode {
  const [state, setState] = useState<TapState | undefined>()
  const [line, setLine] = useState('')
  const running = useRef<AbortController | undefined>(undefined)
  const stop = (): void => running.current?.abort()
  useEffect(() => {
    // The tab is hidden: stop the stream.
    const onHidden = (): void => {
      if (document.hidden) stop()
    }
    document.addEventListener('visibilitychange', onHidden)
    return () => {
      document.removeEventListener('visibilitychange', onHidden)
      stop()
    }
  }, [])
  const start = (event: TargetedEvent<HTMLFormElement, SubmitEvent>): void => {
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
  return (
    <>
      <h1>Tap</h1>
      <p class="lead">
        Requests as they end, without bodies and credentials. If every field is empty, all requests are shown. The audit
        log records each tap and its user.
      </p>
      <form class="form narrow" onSubmit={start}>
        {FIELDS.map(([name, label, example]) => (
          <label key={name}>
            <span>{label}</span>
            <input name={name} placeholder={example} autocomplete="off" spellcheck={false} maxLength={256} />
          </label>
        ))}
        <label class="check">
          <input type="checkbox" name="refused" /> <span>only refused requests</span>
        </label>
        <div class="buttons">
          <button type="submit">{runs ? 'Start again' : 'Start'}</button>
          <button type="button" onClick={stop} disabled={!runs}>
            Stop
          </button>
        </div>
      </form>
      {state !== undefined && <Requests state={state} />}
      {line !== '' && <Command does="The same on the command line" line={line} />}
    </>
  )
}

function asked(form: FormData): { readonly query: URLSearchParams; readonly command: string } {
  const query = new URLSearchParams({ maxRps: RATE, replicas: 'all' })
  const words: string[] = ['portcullis', 'tap']
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

function Requests({ state }: { readonly state: TapState }): VNode {
  const { rows, shown, dropped, seen, ended } = state
  return (
    <Pane id="tap" title="Requests" note={`the newest first, ${whole(shown)} shown`}>
      <p role="status">
        {ended === '' ? <State tone="good">live</State> : <State tone="neutral">{ended}</State>}
        {dropped > 0 && (
          <>
            {' '}
            <State tone="warn">{plural(dropped, 'request')} matched and came too fast to be shown</State>
          </>
        )}
      </p>
      {rows.length === 0 ? (
        <Nothing>{seen > 0 ? `None of ${plural(seen, 'request')} seen so far matches.` : 'No requests yet.'}</Nothing>
      ) : (
        <Table
          label="Requests"
          head={['Time', 'Cluster', 'User', 'Verb', 'What', '#Status', '#Took', 'User agent', 'Address']}
        >
          {rows.map((row, i) => (
            <Row key={`${row.auditID} ${row.replica} ${shown - i}`} row={row} />
          ))}
        </Table>
      )}
    </Pane>
  )
}

function Row({ row }: { readonly row: TapRow }): VNode {
  const { cluster, code, refusal, refusedBy } = row
  const why = [refusal, refusedBy].filter((part) => part !== '').join(' ')
  return (
    <tr>
      <td class="number">{clock(Date.parse(row.time))}</td>
      <th scope="row">{cluster === '' ? '–' : <a href={clusterLink(cluster)}>{cluster}</a>}</th>
      <td>{row.user}</td>
      <td>{row.verb === '' ? row.method : row.verb}</td>
      <td>
        {whatOf(row)}
        {why !== '' && (
          <>
            {' '}
            <State tone="warn">{why}</State>
          </>
        )}
      </td>
      <td class="number">
        {code === 0 ? (
          'none'
        ) : code >= 500 ? (
          <State tone="bad">{code}</State>
        ) : code >= 400 ? (
          <State tone="warn">{code}</State>
        ) : (
          code
        )}
      </td>
      <td class="number">{row.totalMs < 0 ? '–' : latency(row.totalMs)}</td>
      <td class="meta">{row.userAgent}</td>
      <td class="meta">{row.address}</td>
    </tr>
  )
}

function whatOf({ resource, subresource, apiGroup, namespace, name, path, query }: TapRow): string {
  if (resource === '') return `${path}${query === '' ? '' : `?${query}`}`
  const kind = [resource, subresource].filter((part) => part !== '').join('/')
  const place = [namespace, name].filter((part) => part !== '').join('/')
  const asked = query === '' ? '' : ` ?${query}`
  return `${kind}${apiGroup === '' ? '' : `.${apiGroup}`}${place === '' ? '' : ` ${place}`}${asked}`
}
