// A titled part of a page, and what it says when it has nothing to say.

import type { ComponentChildren, VNode } from 'preact'

export interface PaneProps {
  readonly id: string
  readonly title: string
  /** Behind the title, small. */
  readonly note?: string
  readonly children: ComponentChildren
}

export function Pane({ id, title, note, children }: PaneProps): VNode {
  return (
    <section class="pane" aria-labelledby={id}>
      <h2 id={id} tabIndex={-1}>
        {title}
        {note !== undefined && <small> {note}</small>}
      </h2>
      {children}
    </section>
  )
}

export function Nothing({ children }: { readonly children: ComponentChildren }): VNode {
  return <p class="nothing">{children}</p>
}

/** A table that scrolls sideways where it does not fit; focusable, so that it does so by keyboard. */
export function Table({
  label,
  head,
  children,
}: {
  readonly label: string
  /** Column titles; those that begin with `#` are of numbers. */
  readonly head: readonly string[]
  readonly children: ComponentChildren
}): VNode {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard (axe: scrollable-region-focusable)
    <section class="scroll" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {head.map((title) => (
              <th key={title} scope="col" class={title.startsWith('#') ? 'number' : ''}>
                {title.replace(/^#/, '')}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  )
}
