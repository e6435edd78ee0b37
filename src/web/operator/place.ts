/** Which part and scope the view shows. This tab keeps them, so that neither a reload nor signing in again after an hour loses them. */
const shelf = "vivavoce-place";

export interface Place {
  readonly part: string;
  readonly scope: string;
}

export const keepPlace = (place: Place): void => sessionStorage.setItem(shelf, JSON.stringify(place));

export const keptPlace = (): Place | null => JSON.parse(sessionStorage.getItem(shelf) ?? "null") as Place | null;
