// A titled part of a page, with a text for when it is empty.

import type { ComponentChildren, VNode } from 'preact'

interface PaneProps {
  readonly id: string
  readonly title: string
  /** Small text after the title. */
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

/** A table that scrolls sideways if it does not fit; focusable, so that it scrolls by keyboard. */
export function Table({
  label,
  head,
  children,
}: {
  readonly label: string
  /** Column titles; a leading `#` marks numeric columns. */
  readonly head: readonly string[]
  readonly children: ComponentChildren
}): VNode {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard (axe: scrollable-region-focusable)
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
