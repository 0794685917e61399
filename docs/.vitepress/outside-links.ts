// Links that leave docs/ (../src, ../deploy, ../README.md) lead to files that the site does not have. They become links to the repository where
// its address is known, and otherwise the path as text.

import { posix } from 'node:path'
import type { MarkdownEnv, MarkdownRenderer } from 'vitepress'

type Token = ReturnType<MarkdownRenderer['parse']>[number]
type MakeToken = (type: string, tag: string, content: string) => Token

/** @param filesUrl where the root of the repository can be read; '' = nowhere */
export function rewriteOutsideLinks(md: MarkdownRenderer, filesUrl: string): void {
  md.core.ruler.push('outside_links', (state) => {
    const { relativePath } = state.env as MarkdownEnv
    const make: MakeToken = (type, tag, content) => Object.assign(new state.Token(type, tag, 0), { content })
    for (const block of state.tokens) {
      if (block.type === 'inline' && block.children !== null)
        block.children = rewritten(block.children, (href) => pathOutside(href, relativePath), filesUrl, make)
    }
  })
}

/**
 * `../src/main.ts#L1` in `tap.md` -> [`src/main.ts`, `#L1`]; undefined: the site has it, or it is no path.
 *
 * @param page from docs/
 */
export function pathOutside(href: string, page: string): readonly [path: string, anchor: string] | undefined {
  if (/^(?:[a-z][a-z+.-]*:|\/|#)/i.test(href)) return undefined
  const [, target = '', anchor = ''] = /^([^#]*)(#.*)?$/.exec(href) ?? []
  const path = posix.join('docs', posix.dirname(page), decodeURI(target))
  return path.startsWith('docs/') ? undefined : [path, anchor]
}

function rewritten(
  tokens: readonly Token[],
  outside: (href: string) => readonly [string, string] | undefined,
  filesUrl: string,
  make: MakeToken,
): Token[] {
  const result: Token[] = []
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i] as Token
    const found = token.type === 'link_open' ? outside(token.attrGet('href') ?? '') : undefined
    if (found === undefined) {
      result.push(token)
      continue
    }
    const [path, anchor] = found
    if (filesUrl !== '') {
      token.attrSet('href', `${filesUrl.replace(/\/+$/, '')}/${path}${anchor}`)
      result.push(token)
      continue
    }
    const end = tokens.findIndex(({ type }, at) => at > i && type === 'link_close')
    const inParentheses = result.at(-1)?.content.endsWith('(') === true
    result.push(...asText(tokens.slice(i + 1, end), path, inParentheses, make))
    i = end
  }
  return result
}

/** The text of the link, and the path behind it unless the text is the path: `numbers (bench/README.md)`. */
function asText(inner: readonly Token[], path: string, inParentheses: boolean, make: MakeToken): readonly Token[] {
  const code = make('code_inline', 'code', path)
  if (inner.map(({ content }) => content).join('') === path) return [code]
  const [open, close] = inParentheses ? [': ', ''] : [' (', ')']
  return [...inner, make('text', '', open), code, make('text', '', close)]
}
