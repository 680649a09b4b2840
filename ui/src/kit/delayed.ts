import { useEffect, useState } from 'react'

/** useDelayed returns the value once it has not changed for some milliseconds; until then the one before. */
export function useDelayed<T>(value: T, milliseconds: number): T {
  const [delayed, setDelayed] = useState(value)
  useEffect(() => {
    const timer = window.setTimeout(() => {
      setDelayed(value)
    }, milliseconds)
    return () => {
      window.clearTimeout(timer)
    }
  }, [value, milliseconds])
  return delayed
}
