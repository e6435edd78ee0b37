import type { Refusals } from "./en.js";

export const pt: Refusals = {
  formExpired: "Este formulário expirou. Abra-o de novo e tente outra vez.",
  sessionEnded: "Sua sessão terminou. Entre de novo.",
  signInExpired: "Este login expirou ou começou em outro navegador. Comece de novo pela aplicação.",
  tooManyAttempts: "Muitas tentativas sem sucesso. Tente de novo {when}.",
  tooManySignIns: "Muitos logins foram iniciados a partir deste endereço. Tente de novo {when}.",
  wrongPassword: "A senha atual está incorreta.",
  passwordsDiffer: "As duas novas senhas não são iguais.",
  passwordLength: "A senha deve ter de 10 a 256 caracteres.",
  labelLength: "O rótulo deve ter de 1 a 128 caracteres.",
  redirectsNeeded: "Uma conta de usuário precisa de 1 a 10 endereços de redirecionamento.",
  redirectsUnused: "Uma conta de serviço não pode ter endereços de redirecionamento.",
  redirectAddress:
    "Um endereço de redirecionamento deve ser absoluto, sem fragmento, curinga ou nome de usuário, e https (http só nesta máquina).",
  tooManyCredentials: "Um usuário pode ter no máximo 50 credenciais. Exclua uma primeiro.",
  credentialNotFound: "Esta credencial não existe mais.",
  ownersOnly: "Só os proprietários do servidor podem fazer isso.",
  serverFailed: "Ocorreu um erro no servidor. A causa está no log dele.",
  databaseUnavailable: "O banco de dados do servidor não responde. Tente de novo daqui a pouco.",
  requestTooLarge: "Esta requisição é grande demais.",
  nameLength: "O nome e o ambiente devem ter de 1 a 128 caracteres cada um.",
  clientIdPart:
    "A região e o nome do cliente devem ter de 1 a 64 caracteres de A-Z a-z 0-9 . _ - e começar com uma letra ou um dígito.",
  servicesNeeded: "Escolha pelo menos um serviço.",
  scopeIds:
    "No máximo 100 escopos biométricos, cada um de 1 a 128 caracteres ASCII sem espaços, 4096 caracteres ao todo.",
  applicationNotFound: "Esta aplicação não existe mais.",
  clientNotFound: "Este cliente não existe mais.",
  geographyNotFound: "A aplicação não tem esta região.",
  clientExists: "A aplicação já tem um cliente com este nome nesta região.",
  lastClient: "O último cliente de uma aplicação não pode ser excluído. Exclua a aplicação.",
  scopeNotBound: "Nenhuma aplicação deste servidor está mais vinculada a este escopo.",
  profileNotFound: "Este perfil não existe neste escopo.",
  sessionNotFound: "Esta sessão não existe neste escopo.",
  referenceLength: "A referência deve ter no máximo 256 caracteres.",
};
