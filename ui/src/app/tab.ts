/** chosenTab returns the tab that the URL asks for, or the standard one where there is no such tab. */
export const chosenTab = (tabs: readonly { id: string }[], asked: string, standard: string): string =>
  tabs.some((tab) => tab.id === asked) ? asked : standard
