import { jsx as _jsx, jsxs as _jsxs } from 'preact/jsx-runtime'
export function Pane({ id, title, note, children }) {
  return _jsxs('section', {
    class: 'pane',
    'aria-labelledby': id,
    children: [
      _jsxs('h2', {
        id: id,
        tabIndex: -1,
        children: [title, note !== undefined && _jsxs('small', { children: [' ', note] })],
      }),
      children,
    ],
  })
}
export function Nothing({ children }) {
  return _jsx('p', { class: 'nothing', children: children })
}
/** A table that scrolls sideways where it does not fit; focusable, so that it does so by keyboard. */
export function Table({ label, head, children }) {
  return _jsx('section', {
    class: 'scroll',
    'aria-label': label,
    tabIndex: 0,
    children: _jsxs('table', {
      children: [
        _jsx('thead', {
          children: _jsx('tr', {
            children: head.map((title) =>
              _jsx(
                'th',
                { scope: 'col', class: title.startsWith('#') ? 'number' : '', children: title.replace(/^#/, '') },
                title,
              ),
            ),
          }),
        }),
        _jsx('tbody', { children: children }),
      ],
    }),
  })
}
