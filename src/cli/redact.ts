/**
 * A store URL fit for any output: without user, password and parameters. It also takes what is no proper URL, since
 * that is what error messages show: everything up to the last `@` goes, for a password may hold `/`, `@` and `:`; and
 * where there is no `@`, whatever does not look like hosts.
 */
export function redactUrl(text: string): string {
  if (/^sqlite:/i.test(text)) return text
  const [, scheme = '', rest = text] = /^([a-z][a-z0-9+.-]*:(?:\/\/)?)(.*)$/is.exec(text) ?? []
  const at = rest.lastIndexOf('@')
  if (at === -1 && !scheme.endsWith('//')) return text
  const shown = at === -1 ? hidden(rest) : `***@${rest.slice(at + 1)}`
  const query = shown.indexOf('?')
  return scheme + (query === -1 ? shown : `${shown.slice(0, query)}?***`)
}

const HOST = /^(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d{1,5})?$/i

function hidden(rest: string): string {
  const hosts = rest.split(/[/?]/, 1)[0] ?? ''
  return hosts === '' || hosts.split(',').every((host) => HOST.test(host)) ? rest : `***${rest.slice(hosts.length)}`
}
